/** Documents as JSON lines: the range that is shown as a file, and a file into the table. */
import { useState } from 'preact/hooks'
import { lineWriter } from '../../../client/commands/data/document-lines.ts'
import type { TableCatalog } from '../../../wire/catalogs.ts'
import { bytesText } from '../../formats.ts'
import { FailureNote, Section } from '../../parts/page.tsx'
import { Block, Shown } from '../../parts/shown.tsx'
import { call, type Failure, failureOf } from '../../requests.ts'
import { ask, environmentId, may, notice, svcCommand } from '../../state.ts'
import { boundsOf, type IndexChoice } from './bounds.tsx'
import { checkFile, FILE_BYTES_MAX, importFile, type Outcome } from './imports.ts'

/** Documents of one request of an export. */
const EXPORTED_PAGE = 500

type TableField = TableCatalog['tables'][number]

interface Place {
  readonly target: string
  readonly table: TableField
}

/** `onImported` is called after documents were inserted. */
export function Transfers({
  onImported,
  choice,
  ...place
}: Place & { choice: IndexChoice; onImported: () => void }) {
  return (
    <Section title="Export and import">
      <Export {...place} choice={choice} />
      {may('data:write') && <Import {...place} onImported={onImported} />}
    </Section>
  )
}

interface Progress {
  readonly text: string
  readonly isBusy: boolean
  readonly failure: Failure | null
}

const IDLE: Progress = { text: '', isBusy: false, failure: null }

function ProgressNote({ progress: { text, failure } }: { progress: Progress }) {
  return (
    <>
      <p role="status">
        <Shown text={text} />
      </p>
      {failure !== null && <FailureNote failure={failure} />}
    </>
  )
}

function Export({ target, table, choice }: Place & { choice: IndexChoice }) {
  const [progress, setProgress] = useState(IDLE)
  const [isTooLarge, setTooLarge] = useState(false)
  const file = `${table.name}.jsonl`
  const run = async (): Promise<void> => {
    setTooLarge(false)
    let documents = 0
    const show = (text: string): void => setProgress({ text, isBusy: true, failure: null })
    try {
      show('Exporting …')
      const blob = await exported({ target, table, choice }, (count, bytes) => {
        documents = count
        show(`Exported ${count} documents, ${bytesText(bytes)} …`)
      })
      setTooLarge(blob === null)
      if (blob !== null) save(blob, file)
      const text = blob === null ? 'Nothing was saved.' : `Exported ${documents} documents.`
      setProgress({ ...IDLE, text })
    } catch (error) {
      setProgress({ ...IDLE, failure: failureOf(error) })
    }
  }
  return (
    <>
      <p class="quiet">
        The documents of this range and order, each as one line of JSON with its ID and its time.
      </p>
      <div class="buttons">
        <button type="button" disabled={progress.isBusy} onClick={() => void run()}>
          Export as {file}
        </button>
      </div>
      <ProgressNote progress={progress} />
      {isTooLarge && (
        <>
          <p>
            The range has more than {bytesText(FILE_BYTES_MAX)}. Choose a smaller one, or export the
            whole table on the command line:
          </p>
          <Block
            text={svcCommand(`data export ${table.name} ${file} --target ${target}`)}
            label="Command"
          />
        </>
      )}
    </>
  )
}

/** Reads the pages of a range into a file; returns null for more than FILE_BYTES_MAX. */
async function exported(
  { target, table, choice }: Place & { choice: IndexChoice },
  onPage: (documents: number, bytes: number) => void,
): Promise<Blob | null> {
  const id = environmentId.value
  const write = lineWriter(table.fields)
  const range = boundsOf(choice, table)
  const parts: Blob[] = []
  let [documents, bytes] = [0, 0]
  let after: string | null = null
  do {
    const page: { items: readonly Parameters<typeof write>[0][]; next: string | null } = await call(
      'queryDocuments',
      id,
      {
        body: {
          target,
          table: table.name,
          ...(choice.index !== '' && { index: choice.index }),
          range,
          order: choice.order,
          limit: EXPORTED_PAGE,
          ...(after !== null && { after }),
        },
      },
    )
    const part = new Blob(page.items.map((item) => `${write(item)}\n`))
    bytes += part.size
    if (bytes > FILE_BYTES_MAX) return null
    parts.push(part)
    documents += page.items.length
    onPage(documents, bytes)
    after = page.next
  } while (after !== null)
  return new Blob(parts, { type: 'application/x-ndjson' })
}

/** Hands a file to the downloads of the browser. */
function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  // The browser has begun to read it when the click returns, but may not have ended.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

function Import({ target, table, onImported }: Place & { onImported: () => void }) {
  const [progress, setProgress] = useState(IDLE)
  const busy = (text: string): void => setProgress({ text, isBusy: true, failure: null })
  const begin = async (file: File): Promise<void> => {
    try {
      busy('Checking every line …')
      const checked = await checkFile(file, table, (lines) => busy(`Checked ${lines} lines …`))
      const text = `All ${checked.documents} documents of ${file.name} fit the table ${table.name}.`
      setProgress({ ...IDLE, text })
      let outcome: Outcome = { inserted: 0, unchanged: 0 }
      ask({
        title: `Import ${checked.documents} documents into ${table.name}?`,
        effects: [
          `They are inserted at ${target}, some hundreds in one commit. A document that exists ` +
            'with the same fields stays as it is; one that exists with other fields ends the ' +
            'import, and the batches before it stay. A second import of the file inserts no ' +
            'document twice if each line has its _id.',
        ],
        command: svcCommand(`data import ${table.name} FILE --target ${target}`),
        label: 'Import the documents',
        act: async () => {
          outcome = await importFile(checked, { target, table }, ({ inserted, unchanged }) =>
            busy(`Inserted ${inserted} of ${checked.documents}; ${unchanged} existed …`),
          ).finally(() => setProgress({ ...IDLE, text }))
        },
        done: () => {
          const { inserted, unchanged } = outcome
          const same = `${unchanged} existed with the same fields.`
          const counts = `Inserted ${inserted} documents; ${same}`
          setProgress({ ...IDLE, text: counts })
          notice.value = counts
          onImported()
        },
      })
    } catch (error) {
      setProgress({ ...IDLE, failure: failureOf(error) })
    }
  }
  return (
    <>
      <label class="field wide">
        <span class="label">Import a file of JSON lines, one document each</span>
        <input
          type="file"
          name="import"
          accept=".jsonl,.ndjson,.json,.txt"
          disabled={progress.isBusy}
          onChange={(event) => {
            const input = event.currentTarget
            const [file] = input.files ?? []
            if (file !== undefined) void begin(file).finally(() => (input.value = ''))
          }}
        />
      </label>
      <ProgressNote progress={progress} />
    </>
  )
}

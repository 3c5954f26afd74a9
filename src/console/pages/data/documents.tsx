/** One document: its fields as JSON, which a person may replace, and its deletion. */
import { useState } from 'preact/hooks'
import type { TableCatalog } from '../../../wire/catalogs.ts'
import type { DocumentField } from '../../../wire/data.ts'
import { timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { FailureNote, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Identifier } from '../../parts/shown.tsx'
import { editable, plainOfFields, taggedOf } from '../../plain-values.ts'
import { call, type Failure, failureOf, newId, nowMicros } from '../../requests.ts'
import { ask, environmentId, go, hrefOf, may, notice, svcCommand } from '../../state.ts'

/** Characters of a document that a page edits; the command line edits larger ones. */
const EDITED_CHARACTERS_MAX = 200_000

interface Place {
  readonly target: string
  readonly table: TableCatalog['tables'][number]
}

export function DocumentEditor({ target, table, documentId }: Place & { documentId: string }) {
  const id = environmentId.value
  const read = useLoaded(`${id} ${target} ${documentId}`, () =>
    call('readDocument', id, {
      params: { table: table.name, documentId },
      query: { target },
    }),
  )
  return (
    <Section title="Document" actions={<Reload of={[read]} />}>
      <p>
        <a href={hrefOf('data', { target, table: table.name })}>All documents of {table.name}</a>
      </p>
      <Result of={read}>
        {({ document }) => (
          <Editor
            key={document.revision}
            target={target}
            table={table}
            document={document}
            reload={read.reload}
          />
        )}
      </Result>
    </Section>
  )
}

function Editor({
  target,
  table,
  document,
  reload,
}: Place & { document: DocumentField; reload: () => void }) {
  const stored = editable(plainOfFields(document.value, table.fields))
  const [text, setText] = useState(stored)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const params = { table: table.name, documentId: document.id }
  const expectedRevision = document.revision
  const save = async (): Promise<void> => {
    setBusy(true)
    setFailure(null)
    try {
      const value = taggedOf(text, table.fields)
      const body = { target, expectedRevision, value, changedAtMicros: nowMicros() }
      await call('replaceDocument', environmentId.value, { params, body })
      notice.value = `Saved ${document.id}`
      reload()
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  const remove = (): void =>
    ask({
      title: `Delete the document ${document.id}?`,
      effects: [
        `The document of the table ${table.name} and all its fields are deleted, at the revision ` +
          `${expectedRevision}. Only a backup has them afterwards.`,
      ],
      command: svcCommand(
        `data delete ${table.name} ${document.id} --target ${target} ` +
          `--expected ${expectedRevision}`,
      ),
      label: 'Delete the document',
      act: () => {
        const body = { target, expectedRevision, changedAtMicros: nowMicros() }
        return call('deleteDocument', environmentId.value, { params, body })
      },
      done: () => go('data', { target, table: table.name }),
    })
  const isLarge = stored.length > EDITED_CHARACTERS_MAX
  const isEditable = may('data:write') && !isLarge
  return (
    <>
      <p class="facts">
        <Identifier id={document.id} />
        <span>revision {expectedRevision}</span>
        <span>created {timeText(document.createdAtMicros)}</span>
        {document.hiddenFields !== undefined && (
          <span>{document.hiddenFields} fields that the Release does not declare</span>
        )}
      </p>
      {isLarge && <p class="quiet">It is too large to edit here. Use svc data put.</p>}
      {isEditable ? (
        <label class="field wide">
          <span class="label">Fields as JSON</span>
          <textarea
            name="fields"
            rows={14}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      ) : (
        <Block text={stored} label="Fields as JSON" />
      )}
      {failure !== null && <FailureNote failure={failure} />}
      {may('data:write') && (
        <div class="buttons">
          {isEditable && (
            <button
              type="button"
              class="main"
              disabled={isBusy || text === stored}
              onClick={() => void save()}
            >
              Save
            </button>
          )}
          <button type="button" class="danger" onClick={remove}>
            Delete …
          </button>
        </div>
      )}
    </>
  )
}

export function NewDocument({ target, table }: Place) {
  const [text, setText] = useState('{\n}')
  const [failure, setFailure] = useState<Failure | null>(null)
  const [documentId] = useState(() => newId(table.name))
  const insert = async (): Promise<void> => {
    setFailure(null)
    try {
      const value = taggedOf(text, table.fields)
      await call('insertDocument', environmentId.value, {
        params: { table: table.name },
        body: { target, documentId, value, changedAtMicros: nowMicros() },
      })
      notice.value = `Inserted ${documentId}`
      go('data', { target, table: table.name, document: documentId })
    } catch (error) {
      setFailure(failureOf(error))
    }
  }
  return (
    <Section title={`New document of ${table.name}`}>
      <p>
        <a href={hrefOf('data', { target, table: table.name })}>All documents of {table.name}</a>
      </p>
      <label class="field wide">
        <span class="label">Fields as JSON: {Object.keys(table.fields).join(', ')}</span>
        <textarea
          name="fields"
          rows={10}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {failure !== null && <FailureNote failure={failure} />}
      <div class="buttons">
        <button type="button" class="main" onClick={() => void insert()}>
          Insert
        </button>
      </div>
    </Section>
  )
}

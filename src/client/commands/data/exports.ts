/** `svc data export`: writes the documents of a table as JSON lines. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import type { Json } from '../../../value/strict-json.ts'
import type { DocumentField, DocumentPage } from '../../../wire/data.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import { queryDocuments } from '../../../wire/operations/data.ts'
import { type CommandSpec, command, optionalArgument } from '../../contexts.ts'
import { withPath } from '../../files.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { REMOTE } from '../operations.ts'
import { targetOf } from '../targets.ts'
import { lineWriter } from './document-lines.ts'
import { fieldsOf, TABLE, TAGGED, TARGET } from './tables.ts'

/** Stored documents may be confidential. */
const PRIVATE_FILE = 0o600

export const exportCommand: CommandSpec = command({
  name: 'data export',
  summary: 'Write the documents of a table as JSON lines',
  details: [
    'Each line has the fields of a document, its `_id` and its `_createdAt`. Without FILE they go',
    'to standard output. Pages are read one after the other: a document that changes meanwhile is',
    'exported as it is when its page is read.',
  ],
  positionals: [TABLE, optionalArgument('FILE', 'The file to create, which must not exist')],
  options: { ...REMOTE, target: TARGET, tagged: TAGGED },
  examples: ['svc data export messages messages.jsonl --target channel:production'],
  async run(context, { target: given, tagged, ...at }, [table, path]) {
    const remote = await openRemote(context, at)
    const target = targetOf(remote, given, exportCommand)
    let documents = 0
    const fields = tagged ? null : await fieldsOf(remote, target, table!)
    const lines = { table: table!, target, write: lineWriter(fields) }
    if (path === undefined) {
      // A spinner would run into the lines where both streams are one terminal.
      await exportPages(remote, lines, async (page) => {
        for (const line of page) await context.output.line(JSON.parse(line) as Json, null)
      })
      return
    }
    const file = resolvePath(context.environment, path)
    const exporting = toFile(file, (write) =>
      exportPages(remote, lines, async (page) => {
        write(page.map((line) => `${line}\n`).join(''))
        documents += page.length
      }),
    )
    const label = () => `exported ${documents} documents`
    await context.output.progress(label, exporting)
    await context.output.result({ version: 1, table: table!, documents, file }, [
      `Exported ${documents} documents to ${file}.`,
    ])
  },
})

interface ExportedLines {
  readonly table: string
  readonly target: string
  readonly write: (document: DocumentField) => string
}

async function exportPages(
  remote: Remote,
  { target, table, write }: ExportedLines,
  onPage: (lines: readonly string[]) => Promise<void>,
): Promise<void> {
  let after: string | undefined
  do {
    const page: DocumentPage = await remote.call(queryDocuments, {
      body: { target, table, limit: PAGE_MAX, after },
    })
    await onPage(page.items.map(write))
    after = page.next ?? undefined
  } while (after !== undefined)
}

/** Creates the file, and removes it again where the export fails. */
async function toFile(
  path: string,
  exporting: (write: (text: string) => void) => Promise<void>,
): Promise<void> {
  const file = withPath(path, () => openSync(path, 'wx', PRIVATE_FILE))
  let isComplete = false
  try {
    await exporting((text) => {
      withPath(path, () => {
        const bytes = Buffer.from(text)
        for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
      })
    })
    isComplete = true
  } finally {
    closeSync(file)
    if (!isComplete) rmSync(path, { force: true })
  }
}

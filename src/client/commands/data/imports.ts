/** `svc data import`: inserts the documents of a file, and continues where it was interrupted. */
import { Fault, isFault, type Violation } from '../../../errors/fault.ts'
import type { DocumentsImported } from '../../../wire/data.ts'
import { importDocuments } from '../../../wire/operations/data.ts'
import { argument, type CommandSpec, type Context, command, flag, option } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { REMOTE } from '../operations.ts'
import { targetOf } from '../targets.ts'
import { type DocumentLine, lineReader } from './document-lines.ts'
import { type Batch, batchesOf, readLine, withLines } from './import-batches.ts'
import { type Journal, openJournal, unusable, writeJournal } from './import-journals.ts'
import { LineFile } from './line-files.ts'
import { fieldsOf, TABLE, TAGGED, TARGET } from './tables.ts'

/** Batches in flight: the server parses one while it commits others. */
const IN_FLIGHT_MAX = 4
/** Milliseconds between journals. A killed import repeats the batches since the last one. */
const JOURNAL_EVERY_MS = 50
const DEFECTS_SHOWN_MAX = 16

export const importCommand: CommandSpec = command({
  name: 'data import',
  summary: 'Insert the documents of a file of JSON lines',
  details: [
    'Each line is one document: its fields, and its `_id` if it has to keep one. A document that',
    'exists with the same fields stays as it is. The journal says how far the import came: after',
    'an interruption the same command continues there, and inserts no document twice.',
  ],
  positionals: [TABLE, argument('FILE', 'The file, as `svc data export` writes it')],
  options: {
    ...REMOTE,
    target: TARGET,
    tagged: TAGGED,
    journal: option('FILE', 'The journal of the import; by default FILE.journal'),
    'dry-run': flag('Check every line against the schema, and insert nothing'),
  },
  examples: ['svc data import messages messages.jsonl --target channel:production'],
  async run(context, options, [table, path]) {
    const { tagged } = options
    const remote = await openRemote(context, options)
    const target = targetOf(remote, options.target, importCommand)
    const read = lineReader(table!, await fieldsOf(remote, target, table!), tagged)
    const filePath = resolvePath(context.environment, path!)
    const file = await LineFile.open(filePath)
    try {
      if (options['dry-run']) {
        const checked = checkLines(file, read)
        const label = () => `checking ${percent(file)}`
        const documents = await context.output.progress(label, checked)
        await context.output.result({ version: 1, dryRun: true, table: table!, documents }, [
          `All ${documents} documents fit the table ${table}. Nothing was inserted.`,
        ])
        return
      }
      const { environmentId } = remote.descriptor
      const journalPath = resolvePath(context.environment, options.journal ?? `${path}.journal`)
      const subject = { environmentId, target, table: table!, tagged }
      const journal = await openJournal(context, journalPath, subject)
      if (!(await file.skipTo(journal))) {
        throw unusable(journalPath, `belongs to another file than ${filePath}`)
      }
      if (journal.lines > 0) await context.output.note(`Continuing after line ${journal.lines}.`)
      const run = new ImportRun(context, remote, { path: journalPath, journal })
      const label = () => `importing ${percent(file)}`
      const done = await context.output.progress(label, run.send(file, read))
      const { inserted, unchanged } = done
      await context.output.result(
        { version: 1, dryRun: false, table: table!, inserted, unchanged, journal: journalPath },
        [`Inserted ${inserted} documents; ${unchanged} existed with the same fields.`],
      )
    } finally {
      await file.close()
    }
  },
})

function percent(file: LineFile): string {
  return `${Math.floor(file.progress * 100)} %`
}

/** Returns the number of documents. Throws PRODUCT_INVALID that names the first defects. */
async function checkLines(
  file: LineFile,
  read: (line: Uint8Array) => DocumentLine,
): Promise<number> {
  const defects: Violation[] = []
  let documents = 0
  for await (const { number, content } of file.lines()) {
    if (content.length === 0) continue
    try {
      readLine(read, number, content)
      documents += 1
    } catch (error) {
      if (!isFault(error, 'PRODUCT_INVALID')) throw error
      defects.push(...error.violations)
      if (defects.length >= DEFECTS_SHOWN_MAX) break
    }
  }
  if (defects.length > 0) throw new Fault('PRODUCT_INVALID', { violations: defects })
  return documents
}

interface SentBatch {
  readonly batch: Batch
  /** Never rejects. */
  readonly outcome: Promise<{ readonly reply: DocumentsImported } | { readonly error: unknown }>
}

class ImportRun {
  readonly #context: Context
  readonly #remote: Remote
  readonly #journalPath: string
  #journal: Journal
  #writtenAt: number
  /** Oldest first. */
  readonly #inFlight: SentBatch[] = []

  constructor(
    context: Context,
    remote: Remote,
    { path, journal }: { readonly path: string; readonly journal: Journal },
  ) {
    this.#context = context
    this.#remote = remote
    this.#journalPath = path
    this.#journal = journal
    this.#writtenAt = context.environment.system.monotonicMillis()
  }

  /** Sends the lines that follow, and returns the journal of the finished import. */
  async send(file: LineFile, read: (line: Uint8Array) => DocumentLine): Promise<Journal> {
    try {
      for await (const batch of batchesOf(file, read, this.#journal)) {
        this.#inFlight.push({ batch, outcome: this.#outcomeOf(batch) })
        if (this.#inFlight.length >= IN_FLIGHT_MAX) await this.#settleOldest()
      }
      while (this.#inFlight.length > 0) await this.#settleOldest()
      this.#journal = { ...this.#journal, ...file.position(), finished: true }
      return this.#journal
    } catch (error) {
      await this.#settleRest()
      throw this.#unfinished(error)
    } finally {
      writeJournal(this.#journalPath, this.#journal)
    }
  }

  async #outcomeOf(batch: Batch): Promise<Awaited<SentBatch['outcome']>> {
    try {
      return { reply: await this.#request(batch) }
    } catch (error) {
      return { error: withLines(error, batch) }
    }
  }

  #request({ operationId, body }: Batch): Promise<DocumentsImported> {
    return this.#remote.call(importDocuments, { operationId, body })
  }

  /** Waits for the oldest batch, so that the journal never passes one that is not imported. */
  async #settleOldest(): Promise<void> {
    const { batch, outcome } = this.#inFlight.shift()!
    const settled = await outcome
    if ('error' in settled) throw settled.error
    const { inserted, unchanged } = settled.reply
    this.#journal = {
      ...this.#journal,
      ...batch.end,
      inserted: this.#journal.inserted + inserted,
      unchanged: this.#journal.unchanged + unchanged,
    }
    const now = this.#context.environment.system.monotonicMillis()
    if (now - this.#writtenAt < JOURNAL_EVERY_MS) return
    this.#writtenAt = now
    writeJournal(this.#journalPath, this.#journal)
  }

  async #settleRest(): Promise<void> {
    try {
      while (this.#inFlight.length > 0) await this.#settleOldest()
    } catch {
      // The first failure is the one that is reported.
      await Promise.all(this.#inFlight.splice(0).map(({ outcome }) => outcome))
    }
  }

  #unfinished(error: unknown): unknown {
    if (!isFault(error)) return error
    const { lines } = this.#journal
    const next =
      `The lines up to ${lines} are imported. Correct the cause, then run the same command: ` +
      'it continues there.'
    if (!isFault(error, 'CLIENT_CHANGE_INTERRUPTED')) return explained(error, { next })
    return explained(new Fault('CLIENT_INTERRUPTED'), { next })
  }
}

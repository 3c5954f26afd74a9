/**
 * The import of a file of JSON lines. Every line is checked before the first document is inserted,
 * and each line has the same ID in every attempt, so that a repeated import inserts nothing twice.
 */
import { type DocumentLine, lineReader } from '../../../client/commands/data/document-lines.ts'
import { encodeUlid } from '../../../value/ids.ts'
import type { Json } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { TableCatalog } from '../../../wire/catalogs.ts'
import { nowMillis } from '../../clock.ts'
import { bytesText } from '../../formats.ts'
import { call, Failure, failureOf, nowMicros } from '../../requests.ts'
import { environmentId } from '../../state.ts'

/** Bytes of a file that the page reads or makes at most; `svc data` has no such bound. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024
/** Bounds of a batch, as `svc data import` has them. */
const BATCH_DOCUMENTS_MAX = 500
const BATCH_CHARACTERS_MAX = 512 * 1024
/** Lines between two reports of progress. */
const REPORTED_LINES = 1_000
const LINE_FEED = 0x0a
const SEED_BYTES = 5

type TableField = TableCatalog['tables'][number]

export interface CheckedFile {
  readonly file: Blob
  readonly documents: number
  /** The parts of the IDs of lines that name none. */
  readonly startedAtMillis: number
  readonly seed: Uint8Array
}

export interface Outcome {
  readonly inserted: number
  readonly unchanged: number
}

interface NumberedLine extends DocumentLine {
  readonly number: number
}

/** Checks every line against the schema. Throws a Failure with the number of the first defect. */
export async function checkFile(
  file: Blob,
  table: TableField,
  onLines: (lines: number) => void,
): Promise<CheckedFile> {
  if (file.size > FILE_BYTES_MAX) {
    const rule = `It has ${bytesText(file.size)}; the page reads ${bytesText(FILE_BYTES_MAX)}.`
    throw rejected(rule, 'Use svc data import for a file of this size.')
  }
  let documents = 0
  for await (const { number } of documentLines(file, table)) {
    documents += 1
    if (number % REPORTED_LINES === 0) onLines(number)
  }
  if (documents === 0) throw rejected('It has no document.', 'Choose a file with JSON lines.')
  const seed = crypto.getRandomValues(new Uint8Array(SEED_BYTES))
  return { file, documents, startedAtMillis: nowMillis(), seed }
}

/**
 * Inserts the documents batch by batch, in their order. Throws a Failure that names the line of the
 * first batch that was rejected; the batches before it stay.
 */
export async function importFile(
  checked: CheckedFile,
  { target, table }: { readonly target: string; readonly table: TableField },
  onBatch: (outcome: Outcome) => void,
): Promise<Outcome> {
  const id = environmentId.value
  let outcome: Outcome = { inserted: 0, unchanged: 0 }
  const send = async (batch: readonly NumberedLine[]): Promise<void> => {
    const documents = batch.map(({ number, documentId, value }) => ({
      documentId: documentId ?? idOf(checked, table.name, number),
      value: JSON.parse(value) as Json,
    }))
    const body = { target, table: table.name, documents, changedAtMicros: nowMicros() }
    try {
      const { inserted, unchanged } = await call('importDocuments', id, { body })
      outcome = {
        inserted: outcome.inserted + inserted,
        unchanged: outcome.unchanged + unchanged,
      }
      onBatch(outcome)
    } catch (error) {
      throw withLines(failureOf(error), batch)
    }
  }
  let batch: NumberedLine[] = []
  let characters = 0
  for await (const line of documentLines(checked.file, table)) {
    batch.push(line)
    characters += line.value.length
    if (batch.length < BATCH_DOCUMENTS_MAX && characters < BATCH_CHARACTERS_MAX) continue
    await send(batch)
    batch = []
    characters = 0
  }
  if (batch.length > 0) await send(batch)
  return outcome
}

/** Reads the documents of a file. Throws a Failure that names the line of the first defect. */
async function* documentLines(
  file: Blob,
  { name, fields }: TableField,
): AsyncGenerator<NumberedLine> {
  const read = lineReader(name, fields, false)
  let number = 0
  for await (const content of linesOf(file)) {
    number += 1
    if (content.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) continue
    try {
      yield { number, ...read(content) }
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw rejected(
        `line ${number} ${error.message}.`,
        'Correct the line, then choose the file again.',
      )
    }
  }
}

async function* linesOf(file: Blob): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader()
  let rest = new Uint8Array()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    let from = 0
    for (let end = value.indexOf(LINE_FEED); end !== -1; end = value.indexOf(LINE_FEED, from)) {
      yield joined(rest, value.subarray(from, end))
      rest = new Uint8Array()
      from = end + 1
    }
    rest = joined(rest, value.subarray(from))
  }
  if (rest.length > 0) yield rest
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** Returns the same ID for a line in every attempt, ascending with the lines. */
function idOf({ seed, startedAtMillis }: CheckedFile, table: string, line: number): string {
  const entropy = new Uint8Array(10)
  entropy.set(seed)
  new DataView(entropy.buffer).setUint32(6, line)
  return `${table}_${encodeUlid(startedAtMillis, entropy)}`
}

const DOCUMENT_PATH = /^documents\[(\d+)\]\.?(.*)$/

/** Names lines of the file in place of documents of the request. */
function withLines(failure: Failure, batch: readonly NumberedLine[]): Failure {
  const { code, message, next, requestId } = failure
  const violations = failure.violations.map(({ path, rule }) => {
    const [, index, part] = DOCUMENT_PATH.exec(path) ?? []
    const line = index === undefined ? undefined : batch[Number(index)]
    return line === undefined
      ? { path, rule }
      : { path: `line ${line.number} ${part}`.trimEnd(), rule }
  })
  return new Failure({ code, message, next, requestId, violations })
}

function rejected(message: string, next: string): Failure {
  return new Failure({
    code: 'IMPORT_INVALID',
    message: `The file cannot be imported: ${message}`,
    next,
    requestId: null,
    violations: [],
  })
}

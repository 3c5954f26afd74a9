/** Batches of an import: lines in the order of the file, as the bodies of requests. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { sha256 } from '../../../system/digests.ts'
import { decodeBase64Url } from '../../../value/base64url.ts'
import { encodeUlid, type OperationId } from '../../../value/ids.ts'
import { explained } from '../../explanations.ts'
import type { DocumentLine } from './document-lines.ts'
import type { Journal } from './import-journals.ts'
import type { LineFile, LinePosition } from './line-files.ts'
import { valid } from './tables.ts'

/**
 * Bounds of a batch. Larger ones are hardly faster, and take the server longer at one go: the body
 * of a batch is parsed without a pause.
 */
const BATCH_DOCUMENTS_MAX = 500
const BATCH_CHARACTERS_MAX = 512 * 1024

export interface Batch {
  readonly operationId: OperationId
  readonly body: Uint8Array
  /** The lines of its documents. */
  readonly lines: readonly number[]
  /** The position after it. */
  readonly end: LinePosition
}

type ReadLine = (line: Uint8Array) => DocumentLine

/**
 * Yields the batches of the lines that follow. Their bounds depend on the lines alone. Throws
 * PRODUCT_INVALID for the first line that violates the schema, without the batch that it is in.
 */
export async function* batchesOf(
  file: LineFile,
  read: ReadLine,
  journal: Journal,
): AsyncGenerator<Batch> {
  let documents: string[] = []
  let lines: number[] = []
  let characters = 0
  const batch = (): Batch => {
    const made = batchOf(journal, { documents, lines, end: file.position() })
    documents = []
    lines = []
    characters = 0
    return made
  }
  for await (const { number, content } of file.lines()) {
    if (content.length > 0) {
      const line = readLine(read, number, content)
      const id = line.documentId ?? `${journal.table}_${ulidOf(journal, number)}`
      const document = `{"documentId":"${id}","value":${line.value}}`
      documents.push(document)
      lines.push(number)
      characters += document.length
    }
    if (documents.length >= BATCH_DOCUMENTS_MAX || characters >= BATCH_CHARACTERS_MAX) yield batch()
  }
  if (documents.length > 0) yield batch()
}

/** Reads a line. Throws PRODUCT_INVALID that names its number. */
export function readLine(read: ReadLine, number: number, content: Uint8Array): DocumentLine {
  return valid(() => read(content), {}, `line ${number} `)
}

function batchOf(
  journal: Journal,
  {
    documents,
    lines,
    end,
  }: {
    readonly documents: readonly string[]
    readonly lines: readonly number[]
    readonly end: LinePosition
  },
): Batch {
  const { target, table, seed } = journal
  // Documents of a batch are created a microsecond apart, so later lines are created later.
  const changedAtMicros = String(BigInt(journal.changedAtMicros) + BigInt(lines[0]! - 1))
  const head = JSON.stringify({ target, table, changedAtMicros }).slice(0, -1)
  const body = new TextEncoder().encode(`${head},"documents":[${documents.join(',')}]}`)
  // An equal body has an equal Operation ID, so the server recognizes every repeat.
  const entropy = sha256(seed, body).subarray(0, 10)
  const ulid = encodeUlid(millisOf(journal.changedAtMicros), entropy)
  return { operationId: `opn_${ulid}` as OperationId, body, lines, end }
}

/** Returns the same ID for a line in every run of the import, ascending with the lines. */
function ulidOf({ seed, startedAtMicros }: Journal, line: number): string {
  const entropy = new Uint8Array(10)
  entropy.set(decodeBase64Url(seed))
  // A line number of 40 bits.
  const view = new DataView(entropy.buffer)
  view.setUint8(5, Math.floor(line / 2 ** 32))
  view.setUint32(6, line % 2 ** 32)
  return encodeUlid(millisOf(startedAtMicros), entropy)
}

function millisOf(micros: string): number {
  return Number(BigInt(micros) / 1_000n)
}

const DOCUMENT_PATH = /^documents\[(\d+)\]\.?(.*)$/

/** Names lines of the file in place of documents of the request. */
export function withLines(error: unknown, { lines }: Batch): unknown {
  if (!isFault(error)) return error
  const violations = error.violations.map(({ path, rule }) => {
    const [, index, part] = DOCUMENT_PATH.exec(path) ?? []
    return index === undefined
      ? { path, rule }
      : { path: `line ${lines[Number(index)]} ${part}`, rule }
  })
  const { code, kind, detail, retryable, retryAfterSeconds, cause } = error
  const named = new Fault(code, { kind, detail, retryable, retryAfterSeconds, cause, violations })
  return explained(named, {})
}

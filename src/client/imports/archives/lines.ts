/** Splits the content of a file of an export into lines. */
import { exportInvalid } from './export-fault.ts'

const NEWLINE = 10
const CARRIAGE_RETURN = 13
/**
 * Bytes of one line, as of a file that `svc data import` reads.
 * @limit Client: one line of a file of an export that `svc import` reads
 */
export const EXPORT_LINE_BYTES_MAX = 12 * 1024 * 1024

export interface ExportLine {
  /** Counted from 1. */
  readonly number: number
  /** The content without the end of the line. */
  readonly content: Uint8Array
}

/** Yields the lines that are not empty. Throws CLIENT_EXPORT_INVALID for one that is too long. */
export async function* linesOf(
  name: string,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<ExportLine> {
  let pieces: Uint8Array[] = []
  let pending = 0
  let number = 0
  const take = (last: Uint8Array): ExportLine | null => {
    number += 1
    let line = pieces.length === 0 ? last : Buffer.concat([...pieces, last])
    pieces = []
    pending = 0
    if (line.at(-1) === CARRIAGE_RETURN) line = line.subarray(0, -1)
    return line.length === 0 ? null : { number, content: line }
  }
  for await (const chunk of content) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      if (pending + end - from > EXPORT_LINE_BYTES_MAX) throw tooLong(name, number + 1)
      const line = take(chunk.subarray(from, end))
      if (line !== null) yield line
      from = end + 1
    }
    if (from === chunk.length) continue
    pieces.push(chunk.slice(from))
    pending += chunk.length - from
    if (pending > EXPORT_LINE_BYTES_MAX) throw tooLong(name, number + 1)
  }
  if (pieces.length === 0) return
  const line = take(new Uint8Array())
  if (line !== null) yield line
}

function tooLong(name: string, line: number) {
  return exportInvalid(`Line ${line} of ${name} has more than ${EXPORT_LINE_BYTES_MAX} bytes.`)
}

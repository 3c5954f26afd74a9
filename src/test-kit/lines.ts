/** Reads lines. node:readline also ends a line at U+2028, which JSON does not escape. */
import type { Readable } from 'node:stream'

/** Calls `onLine` for each complete line. */
export function readLines(input: Readable, onLine: (line: string) => void): void {
  let parts: string[] = []
  input.setEncoding('utf8')
  input.on('data', (chunk: string) => {
    let start = 0
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', start)) {
      const line = [...parts, chunk.slice(start, end)].join('')
      parts = []
      start = end + 1
      onLine(line)
    }
    if (start < chunk.length) parts.push(chunk.slice(start))
  })
}

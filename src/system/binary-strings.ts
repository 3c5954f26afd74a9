/** Bytes as strings with one character for each, which compare, join and key Maps as texts do. */

/** Without a Buffer around the bytes: asking a view for its memory costs 0.3 us. */
export function binaryString(bytes: Uint8Array, from = 0): string {
  return latin1Slice.call(bytes, from, bytes.length)
}

const { latin1Slice } = Buffer.prototype as unknown as {
  latin1Slice(this: Uint8Array, start: number, end: number): string
}

/** What `binaryString` was given; of other characters the low eight bits. */
export function binaryBytes(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

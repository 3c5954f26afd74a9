/** The results of operation records as the file has them: long ones are compressed. */

/** Shorter results, which most Mutations have, would gain little. */
const COMPRESSED_UNITS_MIN = 1_024

export function storedResult(result: string): string | Uint8Array {
  if (result.length < COMPRESSED_UNITS_MIN) return result
  const compressed = Bun.zstdCompressSync(result, { level: 1 })
  return compressed.length < result.length ? compressed : result
}

export function readResult(stored: string | Uint8Array): string {
  if (typeof stored === 'string') return stored
  return Buffer.from(Bun.zstdDecompressSync(stored)).toString('utf8')
}

/**
 * Sizes of the parts that a file was uploaded in, as text: `5242880x3,17` is three parts of 5 MiB
 * and one of 17 bytes. Parts are of one size, mostly, and metadata is read often, so it is short:
 * a file of 5 GiB has at most 1,025 parts, which take 9 KiB where all are different.
 */

/** A part of a file; both ends in bytes. */
interface Part {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

export function formatPartSizes(sizes: readonly number[]): string {
  const runs: { readonly size: number; count: number }[] = []
  for (const size of sizes) {
    const last = runs.at(-1)
    if (last?.size === size) last.count += 1
    else runs.push({ size, count: 1 })
  }
  return runs.map(({ size, count }) => (count === 1 ? `${size}` : `${size}x${count}`)).join(',')
}

/** Returns the parts in their order, which is the one of their bytes. */
export function partsOfSizes(text: string): readonly Part[] {
  const parts: Part[] = []
  let start = 0
  for (const run of text.split(',')) {
    const [size, count = 1] = run.split('x').map(Number) as [number, number?]
    for (let i = 0; i < count; i++) {
      parts.push({ start, end: start + size })
      start += size
    }
  }
  return parts
}

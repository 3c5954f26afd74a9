/** Attempts to take memory. Each exceeds the bound of 64 MiB that a call may add. */
import { hostileQuery } from '../attempts'

export const keepsObjects = hostileQuery(() => {
  const kept: unknown[] = []
  for (;;) kept.push({ kept })
})

export const keepsBytes = hostileQuery(() => {
  const kept: Uint8Array[] = []
  for (;;) kept.push(new Uint8Array(1_000_000).fill(1))
})

/** Keeps texts of a million characters, each resolved into memory. */
export const keepsStrings = hostileQuery(() => {
  const kept: string[] = []
  for (let i = 0; ; i++) {
    kept.push(`${'x'.repeat(1e6)}${i}`)
    kept.at(-1)?.charCodeAt(5)
  }
})

/** Creates one text of a gigabyte. */
export const keepsAGiantString = hostileQuery(() => {
  let text = 'x'.repeat(2 ** 29)
  for (let i = 0; ; i++) text = `${text.replaceAll('x', 'xx').slice(0, 2 ** 29)}${i}`
})

export const keepsEntries = hostileQuery(() => {
  const kept = new Map<number, unknown>()
  for (let i = 0; ; i++) kept.set(i, [i])
})

/** Fills two thousand million array elements. */
export const fillsArrays = hostileQuery(() => new Array(2 ** 31).fill(0))

/** Nests promises, each of which keeps the one that waits for it. */
export const nestsPromises = hostileQuery(() => {
  const again = (): Promise<unknown> => Promise.resolve().then(again)
  return again()
})

/** Spreads an endless generator. */
export const spreadsForever = hostileQuery(() => {
  function* forever() {
    for (let i = 0; ; i++) yield { i }
  }
  return [...forever()].length
})

/** Keeps memory of native libraries, which the engine's heap does not count. */
export const keepsFormats = hostileQuery(() => {
  const kept: unknown[] = []
  for (;;) kept.push(new Intl.DateTimeFormat('en', { timeZone: 'Europe/Rome' }))
})

/** Keeps large integers. */
export const keepsNumbers = hostileQuery(() => {
  const kept: bigint[] = []
  for (let i = 1n; ; i++) kept.push((1n << 4_000_000n) + i)
})

/** Keeps errors with their stacks. */
export const keepsStacks = hostileQuery(() => {
  const kept: unknown[] = []
  const down = (levels: number): void => {
    kept.push(new Error('x'.repeat(1_000)))
    if (levels > 0) down(levels - 1)
  }
  for (;;) down(500)
})

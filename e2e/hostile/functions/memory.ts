/** Attempts to take memory. Each is ended by the bound of 64 MiB that a call may add. */
import { hostileQuery } from '../attempts'

export const keepsObjects = hostileQuery(() => {
  const kept: unknown[] = []
  for (;;) kept.push({ kept })
})

export const keepsBytes = hostileQuery(() => {
  const kept: Uint8Array[] = []
  for (;;) kept.push(new Uint8Array(1_000_000).fill(1))
})

/** Texts of a million characters, each really there. */
export const keepsStrings = hostileQuery(() => {
  const kept: string[] = []
  for (let i = 0; ; i++) {
    kept.push(`${'x'.repeat(1e6)}${i}`)
    kept.at(-1)?.charCodeAt(5)
  }
})

/** One text of a gigabyte. */
export const keepsAGiantString = hostileQuery(() => {
  let text = 'x'.repeat(2 ** 29)
  for (let i = 0; ; i++) text = `${text.replaceAll('x', 'xx').slice(0, 2 ** 29)}${i}`
})

export const keepsEntries = hostileQuery(() => {
  const kept = new Map<number, unknown>()
  for (let i = 0; ; i++) kept.set(i, [i])
})

/** Two thousand million places at once. */
export const fillsArrays = hostileQuery(() => new Array(2 ** 31).fill(0))

/** Promises that wait hold what waits. */
export const nestsPromises = hostileQuery(() => {
  const again = (): Promise<unknown> => Promise.resolve().then(again)
  return again()
})

/** Spreads what has no end. */
export const spreadsForever = hostileQuery(() => {
  function* forever() {
    for (let i = 0; ; i++) yield { i }
  }
  return [...forever()].length
})

/** Memory of the runtime's own libraries, which no heap of JavaScript counts. */
export const keepsFormats = hostileQuery(() => {
  const kept: unknown[] = []
  for (;;) kept.push(new Intl.DateTimeFormat('en', { timeZone: 'Europe/Rome' }))
})

/** Numbers that are as long as memory. */
export const keepsNumbers = hostileQuery(() => {
  const kept: bigint[] = []
  for (let i = 1n; ; i++) kept.push((1n << 4_000_000n) + i)
})

/** Errors hold their stacks. */
export const keepsStacks = hostileQuery(() => {
  const kept: unknown[] = []
  const down = (levels: number): void => {
    kept.push(new Error('x'.repeat(1_000)))
    if (levels > 0) down(levels - 1)
  }
  for (;;) down(500)
})

/** Attempts to occupy the CPU. Each exceeds the bound of one second of CPU time per call. */
import { hostileQuery } from '../attempts'

export const loops = hostileQuery(() => {
  for (;;);
})

/** Blocks the event loop with microtasks: a timer inside the process cannot run either. */
export const floodsMicrotasks = hostileQuery(async () => {
  for (;;) await null
})

/** Catches every exception that could end the loop. A killed process throws none. */
export const catchesEverything = hostileQuery(() => {
  for (;;) {
    try {
      for (;;);
    } catch {
    } finally {
      for (;;);
    }
  }
})

/** Recurses endlessly, which is an error of the author. */
export const recurses = hostileQuery(() => {
  const again = (): number => 1 + again()
  return again()
})

/** Recurses through code of the engine. */
export const recursesNatively = hostileQuery(() => {
  const list: unknown[] = []
  const again = (): string => [{ toString: again }].join()
  return again() + list
})

/** Loops inside of a native function, where the engine checks no limit. */
export const sortsForever = hostileQuery(() =>
  [1, 2].sort(() => {
    for (;;);
  }),
)

/** Backtracks endlessly, until the engine gives up or the bound is exceeded. */
export const matchesForever = hostileQuery(() => {
  for (let i = 0; ; i++) if (/^(\w+\s?)*$/.test(`${'aaaa '.repeat(40)}${i}!`)) return 'matched'
})

/** Computes a number for minutes; the engine checks no limit there either. */
export const multipliesForever = hostileQuery(() => {
  let one = 3n ** 100_000n
  for (;;) one = (one * one) % (1n << 2_000_000n)
})

/** Loops in a getter of the result, which the host would run by reading it. */
export const answersForever = hostileQuery(() => ({
  get value() {
    for (;;);
  },
}))

/** Loops in `then` of the result. */
export const resolvesForever = hostileQuery(() => ({
  // biome-ignore lint/suspicious/noThenProperty: that is the attempt
  then() {
    for (;;);
  },
}))

/** Loops in the enumeration of the result's keys. */
export const enumeratesForever = hostileQuery(
  () =>
    new Proxy(
      {},
      {
        ownKeys() {
          for (;;);
        },
      },
    ),
)

/** Waits for a promise that nothing can resolve, which is an error at once. */
export const waitsForever = hostileQuery(() => new Promise(() => {}))

/** Searches in native code, with a duration quadratic in the length of the text. */
export const searchesForever = hostileQuery(() => {
  const text = `${'a'.repeat(2e6)}b`
  for (;;) text.lastIndexOf(`${'a'.repeat(1e6)}c`)
})

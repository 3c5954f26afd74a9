/** Attempts to keep the CPU. Each is ended by the bound of one second that a call may take. */
import { hostileQuery } from '../attempts'

export const loops = hostileQuery(() => {
  for (;;);
})

/** Never back in the event loop: a timer inside of the process would not run either. */
export const floodsMicrotasks = hostileQuery(async () => {
  for (;;) await null
})

/** `finally` would swallow an exception that ends it. A killed process has none. */
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

/** An error of the author. */
export const recurses = hostileQuery(() => {
  const again = (): number => 1 + again()
  return again()
})

/** The same through the engine's own code. */
export const recursesNatively = hostileQuery(() => {
  const list: unknown[] = []
  const again = (): string => [{ toString: again }].join()
  return again() + list
})

/** Loops inside of native functions, where no check of the engine looks. */
export const sortsForever = hostileQuery(() =>
  [1, 2].sort(() => {
    for (;;);
  }),
)

/** Backtracking without end. The engine gives up by itself, or the bound does. */
export const matchesForever = hostileQuery(() => {
  for (let i = 0; ; i++) if (/^(\w+\s?)*$/.test(`${'aaaa '.repeat(40)}${i}!`)) return 'matched'
})

/** One number that takes minutes: no check of the engine looks inside either. */
export const multipliesForever = hostileQuery(() => {
  let one = 3n ** 100_000n
  for (;;) one = (one * one) % (1n << 2_000_000n)
})

/** Hooks that the host's own reading of the result runs. */
export const answersForever = hostileQuery(() => ({
  get value() {
    for (;;);
  },
}))

/** A result that is never there. */
export const resolvesForever = hostileQuery(() => ({
  // biome-ignore lint/suspicious/noThenProperty: that is the attempt
  then() {
    for (;;);
  },
}))

/** A key of an object that never ends. */
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

/** Nothing will ever settle it, so it is an error at once. */
export const waitsForever = hostileQuery(() => new Promise(() => {}))

/** A search in native code, quadratic in a long text. */
export const searchesForever = hostileQuery(() => {
  const text = `${'a'.repeat(2e6)}b`
  for (;;) text.lastIndexOf(`${'a'.repeat(1e6)}c`)
})

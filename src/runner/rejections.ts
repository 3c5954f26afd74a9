/** Promises that were rejected while nobody looked at them. */
import { expect } from 'bun:test'

export interface Rejections {
  /** Tells of those that nobody has looked at yet, each once, before it returns. */
  tell(): void
  /** Lets go of those that were told of and looked at since. */
  letGo(): void
}

/**
 * The runtime tells `hear` of them in its event loop, which a runner never waits in, and before it
 * compares what a function throws: that takes 0.13 us and looks at no reason. One that is looked at
 * afterwards it holds until its event loop turns, which it does once while it waits for a promise
 * of ours: 1.3 us, and no code of an author is left to run there. `hear` must not throw.
 */
export function makeRejections(hear: (reason: unknown, promise: object) => void): Rejections {
  process.on('unhandledRejection', hear)
  const nothing = expect(() => {}).not
  return {
    tell: () => nothing.toThrow(),
    letGo() {
      void expect(new Promise<void>((resolve) => setImmediate(resolve))).resolves.toBeUndefined()
    },
  }
}

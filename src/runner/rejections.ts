/**
 * Promises that are rejected without a handler.
 *
 * The runtime reports them in its event loop, which a runner never enters. It has no function to
 * report them at once, but two matchers of its test library do so as a side effect. They are looked
 * up here alone, and tried at the start of a runner: without the effect no runner starts.
 */

export interface Rejections {
  /** Reports promises that no code has handled yet, each once, before it returns: 0.13 us. */
  flush(): void
  /**
   * Releases promises that were reported and have been handled since, which the runtime holds until
   * its event loop turns. It turns once here: 1.3 us, and no code of an author is left to run then.
   */
  release(): void
}

type Listener = (reason: unknown, promise: object) => void

/** The part of the test library that is used. */
interface Matchers {
  expect(value: unknown): {
    readonly not: { toThrow(): void }
    readonly resolves: { toBeUndefined(): unknown }
  }
}

/**
 * Calls `listener`, which must not throw, for each unhandled rejection that is flushed. Throws if
 * the runtime cannot flush them.
 */
export function watchRejections(
  listener: Listener,
  library: unknown = process.getBuiltinModule('bun:test'),
): Rejections {
  const rejections = rejectionsOf(library)
  if (rejections === null || !reportsAtOnce(rejections)) {
    throw new Error(
      `Bun ${process.versions.bun} reports unhandled rejections in its event loop only, which a ` +
        'runner never enters: build svc with Bun 1.4.5, or find another flush for ' +
        'src/runner/rejections.ts',
    )
  }
  process.on('unhandledRejection', listener)
  return rejections
}

function rejectionsOf(library: unknown): Rejections | null {
  const { expect } = (library ?? {}) as Partial<Matchers>
  if (typeof expect !== 'function') return null
  // Before it compares what a function throws, the runtime reports unhandled rejections.
  const matcher = expect(() => {}).not
  return {
    flush: () => matcher.toThrow(),
    // While it waits for a promise, the runtime turns its event loop.
    release() {
      void expect(new Promise<void>((resolve) => setImmediate(resolve))).resolves.toBeUndefined()
    },
  }
}

/** Tries both with a promise of its own. */
function reportsAtOnce({ flush, release }: Rejections): boolean {
  let reported: object | null = null
  let turned = false
  const listener: Listener = (_, promise) => {
    reported = promise
  }
  process.on('unhandledRejection', listener)
  const promise = Promise.reject(new Error('a probe'))
  flush()
  process.off('unhandledRejection', listener)
  promise.catch(() => {})
  setImmediate(() => {
    turned = true
  })
  release()
  return reported === promise && turned
}

/** Promises of writes, which tell whether any code observes them. */
import type { Call } from './calls.ts'

const calls = new WeakMap<object, Call>()

/** A promise whose `then` is noticed; `await` calls `then` of a class other than Promise. */
export class WatchedPromise extends Promise<unknown> {
  static override get [Symbol.species]() {
    return Promise
  }
  // biome-ignore lint/suspicious/noThenProperty: it is a promise, and this is what watches it
  override then<A, B>(
    fulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    calls.get(this)?.unobservedWrites.delete(this)
    return super.then(fulfilled, rejected)
  }
}

/** Counts a promise as an unobserved write of its call; `error` was made where the write was. */
export function watchWrite(call: Call, promise: Promise<unknown>, error: Error | null) {
  calls.set(promise, call)
  call.unobservedWrites.set(promise, error)
  return promise
}

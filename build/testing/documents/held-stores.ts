/** A document store whose commits wait for the test, which lets them go or makes them fail. */
import type { CommitBatch, DocumentStore } from '../../../src/documents/store.ts'
import { Fault } from '../../../src/errors/fault.ts'

export interface HeldStore {
  readonly store: DocumentStore
  /** Those that became durable, in order. */
  readonly stored: readonly CommitBatch[]
  /** From now on commits wait. */
  hold(): void
  /** Resolves when a commit waits. */
  arrived(): Promise<void>
  /** What waits becomes durable, and all that comes later at once. */
  release(): void
  /** What waits fails with the code, and nothing waits any more. */
  fail(code: 'UNAVAILABLE' | 'RESULT_UNCERTAIN'): void
}

/** `before` runs ahead of each commit; what it throws is the outcome. */
export function heldStore(
  real: DocumentStore,
  before: () => Promise<void> = async () => undefined,
): HeldStore {
  const stored: CommitBatch[] = []
  let gate: PromiseWithResolvers<void> | null = null
  let arrival = Promise.withResolvers<void>()

  async function commit(batch: CommitBatch): Promise<void> {
    await before()
    if (gate !== null) {
      arrival.resolve()
      await gate.promise
    }
    await real.commit(batch)
    stored.push(batch)
  }

  function open(end: (gate: PromiseWithResolvers<void>) => void): void {
    const held = gate
    gate = null
    if (held !== null) end(held)
  }

  const store = new Proxy(real, {
    get(target, name) {
      if (name === 'commit') return commit
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  return {
    store,
    stored,
    hold() {
      gate = Promise.withResolvers()
      arrival = Promise.withResolvers()
    },
    arrived: () => arrival.promise,
    release: () => open(({ resolve }) => resolve()),
    fail: (code) => open(({ reject }) => reject(new Fault(code, { detail: 'the test' }))),
  }
}

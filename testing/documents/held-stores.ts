/** A document store whose commits wait until the test releases them or makes them fail. */
import type { CommitBatch, DocumentStore } from '../../src/documents/store.ts'
import { Fault } from '../../src/errors/fault.ts'

export interface HeldStore {
  readonly store: DocumentStore
  /** The durable batches, in order. */
  readonly stored: readonly CommitBatch[]
  /** Makes all later commits wait. */
  hold(): void
  /** Resolves when a commit is delayed. */
  arrived(): Promise<void>
  /** Stores the commit that waits, and later ones without waiting. */
  release(): void
  /** Fails the commit that waits with the code; later ones do not wait. */
  fail(code: 'UNAVAILABLE' | 'RESULT_UNCERTAIN'): void
}

/** `before` runs before each commit, which fails with what it throws. */
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

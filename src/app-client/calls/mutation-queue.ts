/**
 * Sends Mutations one after the other, in the order of their calls. With a store each is kept from
 * before its first attempt until the server has responded, also across page loads.
 */
import { backoffMillis, CONNECTION_BACKOFF } from '../backoff.ts'
import { type CallError, clientError, hasCode, isCallError, toCallError } from '../errors.ts'
import type { Platform } from '../platform.ts'
import type { MutationStore, StoredMutation } from '../stores/mutation-store.ts'
import type { Answer } from './responses.ts'

/** The outcome of a Mutation of an earlier page load. */
export interface SettledMutation {
  readonly operationId: string
  readonly function: string
  /** The failure; null after a success. */
  readonly error: CallError | null
  /** The result after a success. */
  readonly result: unknown
}

export interface QueuedMutation extends StoredMutation {
  readonly deadlineMillis: number
  readonly signal?: AbortSignal | undefined
}

export interface MutationQueueOptions {
  readonly platform: Platform
  readonly store: MutationStore | null
  readonly deadlineMillis: number
  send(mutation: QueuedMutation): Promise<Answer>
  onChange(): void
  onSettled(settled: SettledMutation): void
}

interface Entry {
  readonly mutation: QueuedMutation
  /** Resolves once the store has kept the Mutation. */
  readonly stored: Promise<void>
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Age after which a stored Mutation is not sent again. The server remembers operation IDs for 30
 * days, and the day between allows for clocks that differ.
 */
const AGE_MILLIS_MAX = 29 * 24 * 3_600_000

export class MutationQueue {
  readonly #options: MutationQueueOptions
  readonly #entries: Entry[] = []
  readonly #loaded: Promise<void>
  #isRunning = false
  #isClosed = false
  #wake: (() => void) | null = null

  constructor(options: MutationQueueOptions) {
    this.#options = options
    this.#loaded = this.#load()
  }

  /** The number of Mutations without a response. */
  get pending(): number {
    return this.#entries.length
  }

  /** Sends the Mutation after all earlier ones. Rejects with CallError. */
  add(mutation: QueuedMutation): Promise<Answer> {
    const { store } = this.#options
    const stored = this.#loaded.then(() => store?.put(storable(mutation)))
    // The rejection is handled when the queue reaches the entry.
    stored.catch(() => undefined)
    return new Promise((resolve, reject) => {
      this.#entries.push({ mutation, stored, resolve, reject })
      this.#options.onChange()
      void this.#run()
    })
  }

  /** Ends the pause between attempts, since the network may be back. */
  wake(): void {
    this.#wake?.()
  }

  /** Rejects waiting Mutations. The next client of the store sends those that are stored. */
  close(): void {
    this.#isClosed = true
    this.#wake?.()
    for (const { mutation, reject } of this.#entries.splice(0)) {
      const { operationId } = mutation
      const details = { operationId, outcomeKnown: false }
      reject(clientError('CLIENT_INTERRUPTED', 'The client was closed.', details))
    }
  }

  async #load(): Promise<void> {
    const { store, platform, deadlineMillis, onSettled } = this.#options
    const loaded = await store?.load().catch(() => [])
    const found = [...(loaded ?? [])].sort((a, b) => (a.operationId < b.operationId ? -1 : 1))
    const entries: Entry[] = []
    for (const mutation of found) {
      const { operationId } = mutation
      const settle = (error: CallError | null, result: unknown) =>
        onSettled({ operationId, function: mutation.function, error, result })
      if (platform.nowMillis() - mutation.createdAtMillis > AGE_MILLIS_MAX) {
        await store?.remove(operationId).catch(() => undefined)
        settle(tooOld(operationId), undefined)
        continue
      }
      entries.push({
        mutation: { ...mutation, deadlineMillis },
        stored: Promise.resolve(),
        resolve: ({ result }) => settle(null, result),
        reject: (error) => settle(error as CallError, undefined),
      })
    }
    this.#entries.unshift(...entries)
    if (entries.length === 0 || this.#isClosed) return
    this.#options.onChange()
    void this.#run()
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    await this.#loaded
    while (this.#entries.length > 0) {
      const entry = this.#entries[0]!
      try {
        const answer = await this.#sendStored(entry)
        this.#finish(entry, () => entry.resolve(answer))
      } catch (error) {
        this.#finish(entry, () => entry.reject(error))
      }
    }
    this.#isRunning = false
  }

  #finish(entry: Entry, settle: () => void): void {
    // A closed client leaves unfinished Mutations in the store.
    if (this.#entries[0] !== entry) return
    this.#entries.shift()
    const { operationId } = entry.mutation
    // If the removal fails, the next page load sends the Mutation again and gets the first result.
    void this.#options.store?.remove(operationId).catch(() => undefined)
    settle()
    this.#options.onChange()
  }

  async #sendStored({ mutation, stored }: Entry): Promise<Answer> {
    const { send, store } = this.#options
    try {
      await stored
    } catch (error) {
      throw toCallError(error, 'CLIENT_FILE_FAILED', 'The store has not kept the Mutation.')
    }
    for (let failures = 1; ; failures++) {
      try {
        return await send(mutation)
      } catch (error) {
        if (store === null || this.#isClosed || !mayWait(error)) throw error
      }
      await this.#pause(failures)
      if (this.#isClosed) throw clientError('CLIENT_INTERRUPTED', 'The client was closed.')
    }
  }

  #pause(failures: number): Promise<void> {
    const { platform } = this.#options
    return new Promise((resolve) => {
      const done = () => {
        cancel()
        this.#wake = null
        resolve()
      }
      const cancel = platform.after(backoffMillis(CONNECTION_BACKOFF, failures, platform), done)
      this.#wake = done
    })
  }
}

/** Returns whether a Mutation stays stored: another attempt may succeed. */
function mayWait(error: unknown): boolean {
  if (!isCallError(error)) return false
  return (
    error.retryable ||
    hasCode(error, 'CLIENT_SERVER_UNREACHABLE', 'CLIENT_RESULT_UNCERTAIN') ||
    hasCode(error, 'FUNCTIONAL_TOKEN_INVALID', 'FUNCTIONAL_TOKEN_REQUIRED')
  )
}

function storable({ operationId, ...rest }: QueuedMutation): StoredMutation {
  const { target, body, createdAtMillis } = rest
  return { operationId, function: rest.function, target, body, createdAtMillis }
}

function tooOld(operationId: string): CallError {
  const message = 'The Mutation is too old to be sent again. It may have taken effect.'
  const details = { operationId, outcomeKnown: false }
  return clientError('CLIENT_RESULT_UNCERTAIN', message, details)
}

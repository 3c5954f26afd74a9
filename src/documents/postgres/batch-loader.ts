/**
 * Loads values by key in batches: keys that arrive while statements are running are loaded by one
 * statement, since its round trip costs far more than its result.
 */

/** Keys of one statement. */
const KEYS_MAX = 512
/** Statements that run at once. */
const RUNNING_MAX = 3

interface PendingKey<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export class BatchLoader<Key, Value> {
  readonly #loadBatch: (keys: readonly Key[]) => Promise<readonly Value[]>
  #pending: PendingKey<Key, Value>[] = []
  #isScheduled = false
  #running = 0

  /** `loadBatch` resolves to one value per key, in the order of the keys. */
  constructor(loadBatch: (keys: readonly Key[]) => Promise<readonly Value[]>) {
    this.#loadBatch = loadBatch
  }

  load(key: Key): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>()
    this.#pending.push({ key, resolve, reject })
    this.#schedule()
    return promise
  }

  #schedule(): void {
    if (this.#isScheduled || this.#pending.length === 0 || this.#running >= RUNNING_MAX) return
    this.#isScheduled = true
    // One turn of the event loop collects the keys of all messages that arrived together.
    setImmediate(() => {
      this.#isScheduled = false
      void this.#run()
      this.#schedule()
    })
  }

  async #run(): Promise<void> {
    const batch = this.#pending.splice(0, KEYS_MAX)
    this.#running += 1
    try {
      const values = await this.#loadBatch(batch.map(({ key }) => key))
      for (const [i, { resolve }] of batch.entries()) resolve(values[i]!)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#running -= 1
      this.#schedule()
    }
  }
}

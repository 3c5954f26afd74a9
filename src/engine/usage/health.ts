/** Whether the parts that calls need do their work, in one word each. */
import type { DocumentStore } from '../../documents/store.ts'
import type { PoolStatistics } from '../runners/runner-pool.ts'

export type HealthStatus = 'healthy' | 'degraded' | 'unavailable'

export interface ComponentHealth {
  readonly name: 'runtime' | 'documents'
  readonly status: HealthStatus
}

/** Who decides where calls go waits for a second, mostly. */
const ANSWER_MILLIS = 800
/** Runners that broke within a minute: calls beside them are run again, and wait. */
const BREAKDOWNS_MAX = 5
/** Starts that failed one after the other, while no runner is left. */
const FAILED_STARTS_MAX = 3

/** Documents that can be read while commits fail are degraded. */
export async function healthOf(
  documents: DocumentsHealth,
  commits: { readonly isFailing: boolean },
  pool: PoolStatistics,
): Promise<readonly ComponentHealth[]> {
  const reads = await documents.ask()
  return [
    { name: 'runtime', status: runtimeHealth(pool) },
    { name: 'documents', status: reads === 'healthy' && commits.isFailing ? 'degraded' : reads },
  ]
}

/** Degraded where Functions run with less than full containment, or runners keep breaking. */
export function runtimeHealth(pool: PoolStatistics): HealthStatus {
  const { containment, recentBreakdowns, failedStarts, runners } = pool
  if (failedStarts >= FAILED_STARTS_MAX && runners === 0) return 'unavailable'
  return containment !== 'full' || recentBreakdowns >= BREAKDOWNS_MAX ? 'degraded' : 'healthy'
}

/** Asks the store for a document that nobody made: it has to look. */
export class DocumentsHealth {
  readonly #store: DocumentStore
  #asked: Promise<HealthStatus> | null = null

  constructor(store: DocumentStore) {
    this.#store = store
  }

  /** Within `answerMillis`. */
  async ask(answerMillis = ANSWER_MILLIS): Promise<HealthStatus> {
    if (this.#store.status.state !== 'open') return 'unavailable'
    // One question for all: anybody may ask, and one without an answer holds a connection.
    this.#asked ??= this.#read().finally(() => {
      this.#asked = null
    })
    const late = Promise.withResolvers<HealthStatus>()
    const timer = setTimeout(() => late.resolve('unavailable'), answerMillis)
    try {
      return await Promise.race([this.#asked, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #read(): Promise<HealthStatus> {
    try {
      await this.#store.read('health', this.#store.latestSequence)
      return 'healthy'
    } catch {
      return 'unavailable'
    }
  }
}

/** Health of the components that calls depend on: the runners and the document store. */
import type { DocumentStore } from '../../documents/store.ts'
import type { PoolStatistics } from '../runners/runner-pool.ts'

export type HealthStatus = 'healthy' | 'degraded' | 'unavailable'

export interface ComponentHealth {
  readonly name:
    | 'runtime'
    | 'documents'
    | 'scheduler'
    | 'releases'
    | 'files'
    | 'realtime'
    | 'logs'
    | 'backups'
    | 'certificate'
  readonly status: HealthStatus
}

/** Time within which the store must reply, below the usual health check timeout of 1 s. */
const READ_MILLIS_MAX = 800
/** Runner failures within a minute that degrade the runtime: other calls in them run again. */
const BREAKDOWNS_MAX = 5
/** Consecutive failed starts that make the runtime unavailable while no runner is left. */
const FAILED_STARTS_MAX = 3

/** Returns the worse of two states. */
export function worstHealth(one: HealthStatus, other: HealthStatus): HealthStatus {
  const states: readonly HealthStatus[] = ['unavailable', 'degraded']
  return states.find((state) => state === one || state === other) ?? 'healthy'
}

/** Returns the health of all components. Documents are degraded while only commits fail. */
export async function componentHealth(
  documents: DocumentsHealth,
  commits: { readonly isFailing: boolean },
  pool: PoolStatistics,
): Promise<readonly ComponentHealth[]> {
  const reads = await documents.check()
  return [
    { name: 'runtime', status: runtimeHealth(pool) },
    { name: 'documents', status: reads === 'healthy' && commits.isFailing ? 'degraded' : reads },
  ]
}

/** The runtime is degraded without full containment of runners, or while they fail often. */
export function runtimeHealth(pool: PoolStatistics): HealthStatus {
  const { containment, recentBreakdowns, failedStarts, runners } = pool
  if (failedStarts >= FAILED_STARTS_MAX && runners === 0) return 'unavailable'
  return containment !== 'full' || recentBreakdowns >= BREAKDOWNS_MAX ? 'degraded' : 'healthy'
}

/** The ID of a document that does not exist. The stores read nothing for another text. */
const ABSENT_ID = 'health_00000000000000000000000000'

/** Checks the document store by a read of a document that does not exist, which no cache holds. */
export class DocumentsHealth {
  readonly #store: DocumentStore
  #running: Promise<HealthStatus> | null = null

  constructor(store: DocumentStore) {
    this.#store = store
  }

  /** Returns `unavailable` where the store does not reply within `millisMax`. */
  async check(millisMax = READ_MILLIS_MAX): Promise<HealthStatus> {
    if (this.#store.status.state !== 'open') return 'unavailable'
    // Concurrent checks share one read: any client may check, and a read holds a connection.
    this.#running ??= this.#read().finally(() => {
      this.#running = null
    })
    const timeout = Promise.withResolvers<HealthStatus>()
    const timer = setTimeout(() => timeout.resolve('unavailable'), millisMax)
    try {
      return await Promise.race([this.#running, timeout.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #read(): Promise<HealthStatus> {
    try {
      await this.#store.read(ABSENT_ID, this.#store.latestSequence)
      return 'healthy'
    } catch {
      return 'unavailable'
    }
  }
}

/** Whether the parts that calls need do their work, in one word each. */
import type { DocumentStore } from '../../documents/store.ts'
import type { PoolStatistics } from '../runner-pool.ts'

export type HealthStatus = 'healthy' | 'degraded' | 'unavailable'

export interface ComponentHealth {
  readonly name: 'runtime' | 'documents'
  readonly status: HealthStatus
}

/** A database that takes longer to say anything cannot serve a Query either. */
const ANSWER_MILLIS = 2_000
/** Runners that broke within a minute: calls beside them are run again, and wait. */
const BREAKDOWNS_MAX = 5
/** Starts that failed one after the other, while no runner is left. */
const FAILED_STARTS_MAX = 3

/** Documents that can be read while commits fail are degraded. */
export async function healthOf(
  store: DocumentStore,
  commits: { readonly isFailing: boolean },
  pool: PoolStatistics,
): Promise<readonly ComponentHealth[]> {
  const reads = await documentsHealth(store)
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
export async function documentsHealth(
  store: DocumentStore,
  answerMillis = ANSWER_MILLIS,
): Promise<HealthStatus> {
  if (store.status.state !== 'open') return 'unavailable'
  const late = Promise.withResolvers<HealthStatus>()
  const timer = setTimeout(() => late.resolve('unavailable'), answerMillis)
  try {
    const read = Promise.resolve(store.read('health', store.latestSequence))
    const asked = read.then((): HealthStatus => 'healthy')
    return await Promise.race([asked, late.promise])
  } catch {
    return 'unavailable'
  } finally {
    clearTimeout(timer)
  }
}

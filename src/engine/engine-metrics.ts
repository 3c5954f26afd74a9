/** Adds the statistics of the engine and its runner pool to the metrics. */
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { EngineStatistics } from './engine.ts'
import type { RunnerPool } from './runners/runner-pool.ts'

export function addEngineMetrics(
  metrics: Metrics,
  statistics: () => EngineStatistics,
  pool: RunnerPool,
): void {
  metrics.addSource(() => {
    const { cache, actions, subscriptions, scheduler, ...others } = statistics()
    const { migrations, inFlight, durableSequence } = others
    const { hits, misses } = cache
    return {
      queryCacheHits: hits,
      queryCacheMisses: misses,
      queryCacheEvictions: cache.evictions,
      queryCacheEntries: cache.entries,
      queryCacheCharacters: cache.characters,
      queryCacheHitPercent: hits === 0 ? 0 : (100 * hits) / (hits + misses),
      invocationsInFlight: inFlight,
      actionsRunning: actions.running,
      actionsWaiting: actions.waiting,
      scheduledSucceeded: scheduler.succeeded,
      scheduledFailed: scheduler.failed,
      scheduledUnfinished: scheduler.unfinished,
      scheduledRunning: scheduler.running,
      scheduledDue: scheduler.due,
      deliveryCharacters: scheduler.deliveryCharacters,
      deliveriesWaiting: scheduler.waits,
      deliveryWaitsExpired: scheduler.waitsExpired,
      migrationsRunning: migrations.running,
      migrationsBlocked: migrations.blocked,
      migrationDocuments: migrations.processed,
      migrationDocumentsChanged: migrations.changed,
      subscriptions: subscriptions.subscriptions,
      watchedQueries: subscriptions.queries,
      subscriptionRefreshes: subscriptions.refreshes,
      durableSequence,
    }
  })
  metrics.addSource(() => {
    const { releases, transactionRunners, actionRunners, inFlight } = pool.statistics()
    const { cpuMicros, residentBytes } = pool.usage()
    return {
      releasesLoaded: releases,
      transactionRunners,
      actionRunners,
      runnerCallsInFlight: inFlight,
      runnerCpuMicros: cpuMicros,
      runnerResidentBytes: residentBytes,
    }
  })
}

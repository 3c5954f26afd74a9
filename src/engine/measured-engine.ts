/** Counts the calls of an engine by kind and outcome, and measures their durations. */
import { isFault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import type { Counter, Histogram, Metrics } from '../telemetry/metrics/metrics.ts'
import type { CallEngine, Engine } from './engine.ts'
import { addEngineMetrics } from './engine-metrics.ts'
import type { MutationOutcome } from './invocations/mutations.ts'
import type { RunnerPool } from './runners/runner-pool.ts'

interface KindMetrics {
  readonly succeeded: Counter
  readonly rejected: Counter
  readonly failed: Counter
  readonly unavailable: Counter
  readonly duration: Histogram
}

export interface MeasuredEngineOptions {
  readonly metrics: Metrics
  readonly system: System
  readonly pool: RunnerPool
}

/** Wraps the engine to update the metrics. It does not delay replies. */
export function measuredEngine(engine: Engine, options: MeasuredEngineOptions): Engine {
  addEngineMetrics(options.metrics, engine.statistics, options.pool)
  return { ...engine, ...measuredCalls(engine, options) }
}

/** Wraps the calls alone. */
export function measuredCalls(
  engine: CallEngine,
  { metrics, system }: Omit<MeasuredEngineOptions, 'pool'>,
): CallEngine {
  const queries = metricsOf(metrics, 'queries', 'queryDurationMicros')
  const mutations = metricsOf(metrics, 'mutations', 'mutationDurationMicros')
  const actions = metricsOf(metrics, 'actions', 'actionDurationMicros')
  const { mutationsReplayed, writeConflicts } = metrics.counters

  const countReplay = ({ replayed }: MutationOutcome): void => {
    if (replayed) mutationsReplayed.add()
  }

  function record(kind: KindMetrics, counter: Counter, startedMillis: number): void {
    counter.add()
    kind.duration.observe((system.monotonicMillis() - startedMillis) * 1000)
  }

  function measure<T>(
    kind: KindMetrics,
    call: Promise<T>,
    onSuccess?: (outcome: T) => void,
  ): Promise<T> {
    const startedMillis = system.monotonicMillis()
    call.then(
      (outcome) => {
        record(kind, kind.succeeded, startedMillis)
        onSuccess?.(outcome)
      },
      (error: unknown) => {
        record(kind, kind[classOf(error)], startedMillis)
        if (isFault(error, 'WRITE_CONFLICT')) writeConflicts.add()
      },
    )
    return call
  }

  return {
    ...engine,
    query(request) {
      let outcome: ReturnType<Engine['query']>
      try {
        outcome = engine.query(request)
      } catch (error) {
        queries[classOf(error)].add()
        throw error
      }
      if (outcome instanceof Promise) return measure(queries, outcome)
      queries.succeeded.add()
      request.trace?.set({ 'svc.query.cached': true })
      return outcome
    },
    mutation: (request) => measure(mutations, engine.mutation(request), countReplay),
    async replay(request, callers) {
      const outcome = await engine.replay(request, callers)
      if (outcome !== null) countReplay(outcome)
      return outcome
    },
    action: (request) => measure(actions, engine.action(request)),
  }
}

function metricsOf(
  { counters, histograms }: Metrics,
  kind: 'queries' | 'mutations' | 'actions',
  duration: keyof Metrics['histograms'],
): KindMetrics {
  return {
    succeeded: counters[`${kind}Succeeded`],
    rejected: counters[`${kind}Refused`],
    failed: counters[`${kind}Failed`],
    unavailable: counters[`${kind}Unavailable`],
    duration: histograms[duration],
  }
}

/** Classifies a failure by its HTTP status. */
function classOf(error: unknown): 'rejected' | 'failed' | 'unavailable' {
  if (!isFault(error)) return 'failed'
  if (error.status < 500) return 'rejected'
  return error.status === 500 ? 'failed' : 'unavailable'
}

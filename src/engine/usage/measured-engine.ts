/** Counts the calls of an engine: how each kind ended, and how long it took. */
import { isFault } from '../../errors/fault.ts'
import type { Counter, Histogram, Metrics } from '../../telemetry/metrics/metrics.ts'
import type { Engine, EngineOptions } from '../engine.ts'
import type { MutationOutcome } from '../invocations/mutations.ts'
import { addEngineFigures } from './figures.ts'

interface KindMetrics {
  readonly succeeded: Counter
  readonly refused: Counter
  readonly failed: Counter
  readonly unavailable: Counter
  readonly duration: Histogram
}

/** The same engine, whose figures are in the metrics; what is counted delays no answer. */
export function measuredEngine(
  engine: Engine,
  { metrics, system, pool }: Pick<EngineOptions, 'metrics' | 'system' | 'pool'>,
): Engine {
  addEngineFigures(metrics, engine.statistics, pool)
  const queries = metricsOf(metrics, 'queries', 'queryDurationMicros')
  const mutations = metricsOf(metrics, 'mutations', 'mutationDurationMicros')
  const actions = metricsOf(metrics, 'actions', 'actionDurationMicros')
  const { mutationsReplayed, writeConflicts } = metrics.counters

  const countReplay = ({ replayed }: MutationOutcome): void => {
    if (replayed) mutationsReplayed.add()
  }

  function ended(kind: KindMetrics, counter: Counter, startedMillis: number): void {
    counter.add()
    kind.duration.observe((system.monotonicMillis() - startedMillis) * 1000)
  }

  function watch<T>(
    kind: KindMetrics,
    pending: Promise<T>,
    onSuccess?: (outcome: T) => void,
  ): Promise<T> {
    const startedMillis = system.monotonicMillis()
    pending.then(
      (outcome) => {
        ended(kind, kind.succeeded, startedMillis)
        onSuccess?.(outcome)
      },
      (error: unknown) => {
        ended(kind, kind[classOf(error)], startedMillis)
        if (isFault(error, 'WRITE_CONFLICT')) writeConflicts.add()
      },
    )
    return pending
  }

  return {
    ...engine,
    query(request) {
      let answer: ReturnType<Engine['query']>
      try {
        answer = engine.query(request)
      } catch (error) {
        queries[classOf(error)].add()
        throw error
      }
      if (answer instanceof Promise) return watch(queries, answer)
      queries.succeeded.add()
      return answer
    },
    mutation: (request) => watch(mutations, engine.mutation(request), countReplay),
    async repeated(repeat, callers) {
      const outcome = await engine.repeated(repeat, callers)
      if (outcome !== null) countReplay(outcome)
      return outcome
    },
    action: (request) => watch(actions, engine.action(request)),
  }
}

function metricsOf(
  { counters, histograms }: Metrics,
  kind: 'queries' | 'mutations' | 'actions',
  duration: keyof Metrics['histograms'],
): KindMetrics {
  return {
    succeeded: counters[`${kind}Succeeded`],
    refused: counters[`${kind}Refused`],
    failed: counters[`${kind}Failed`],
    unavailable: counters[`${kind}Unavailable`],
    duration: histograms[duration],
  }
}

/** Whose doing it is, as the status says that a caller gets. */
function classOf(error: unknown): 'refused' | 'failed' | 'unavailable' {
  if (!isFault(error)) return 'failed'
  if (error.status < 500) return 'refused'
  return error.status === 500 ? 'failed' : 'unavailable'
}

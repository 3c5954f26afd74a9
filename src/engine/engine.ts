/** Function execution of one Environment: documents, committer, cache and runners put together. */
import type { DocumentStore } from '../documents/store.ts'
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { FunctionManifest } from '../value/manifest.ts'
import type { Json } from '../value/strict-json.ts'
import type { ValueObject } from '../value/values.ts'
import { CheckedArguments } from './checked-arguments.ts'
import { Committer } from './committer.ts'
import type { PreparationCheck } from './compatibility.ts'
import type { InvocationContext } from './invocations.ts'
import { INVOCATIONS_MAX } from './limits.ts'
import { type MutationOutcome, Mutations } from './mutations.ts'
import { Preparations } from './preparations.ts'
import type { PreparedRelease } from './prepared-release.ts'
import { Queries, type QueryOutcome } from './queries.ts'
import { type CacheStatistics, QueryCache } from './query-cache.ts'
import type { Release, ReleaseCode } from './release.ts'
import { Retention } from './retention.ts'
import type { RunnerPool } from './runner-pool.ts'

export interface EngineOptions {
  readonly store: DocumentStore
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
}

export interface QueryRequest {
  readonly release: Release
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
  readonly context: InvocationContext
}

export interface MutationRequest extends QueryRequest {
  readonly operationId: string
  readonly target: string
  readonly caller: string
}

export interface Engine {
  /** What the code says of itself inside the sandbox; nothing of it is trusted. */
  describe(code: ReleaseCode): Promise<Json>
  /**
   * Makes every index that the Release reads, compares its schema with what is stored and starts a
   * runner for it. A failed check leaves other Releases as they were.
   */
  prepare(release: Release): Promise<readonly PreparationCheck[]>
  query(request: QueryRequest): QueryOutcome | Promise<QueryOutcome>
  mutation(request: MutationRequest): Promise<MutationOutcome>
  ready(): boolean
  statistics(): EngineStatistics
  close(): Promise<void>
}

export interface EngineStatistics {
  readonly cache: CacheStatistics
  readonly inFlight: number
  readonly durableSequence: number
}

export function createEngine({ store, pool, system, log }: EngineOptions): Engine {
  const cache = new QueryCache(system)
  const committer = new Committer({
    store,
    system,
    onCommit: (_, writes) => cache.invalidate(writes),
  })
  const port = { store, pool, system, log, cache, committer }
  const queries = new Queries(port)
  const mutations = new Mutations(port)
  const retention = new Retention({ store, committer, system, log })
  const preparations = new Preparations(store, committer)
  const checked = new CheckedArguments()
  let inFlight = 0
  retention.start()

  const admitted = async <T>(
    request: QueryRequest,
    work: (input: { prepared: PreparedRelease; argumentsText: string }) => Promise<T>,
  ): Promise<T> => {
    if (inFlight >= INVOCATIONS_MAX) throw new Fault('BUSY')
    inFlight += 1
    try {
      const prepared = await preparations.prepare(request.release)
      return await work({ prepared, argumentsText: checked.textOf(prepared, request) })
    } finally {
      inFlight -= 1
    }
  }

  /** Answers at once where the result is kept: it costs no run, so it takes no admission. */
  const query = (request: QueryRequest): QueryOutcome | Promise<QueryOutcome> => {
    const prepared = preparations.find(request.release.releaseId)
    if (prepared !== null) {
      const argumentsText = checked.textOf(prepared, request)
      const kept = queries.find({ prepared, definition: request.definition, argumentsText })
      if (kept !== null) return kept
    }
    return admitted(request, (input) => queries.invoke({ ...request, ...input }))
  }

  return {
    describe: (code) => pool.describe(code),
    prepare: async (release) => {
      const checks = await preparations.check(release)
      await pool.warm(release)
      return checks
    },
    query,
    mutation: (request) => admitted(request, (input) => mutations.invoke({ ...request, ...input })),
    ready: () => store.status.state === 'open',
    statistics: () => ({
      cache: cache.statistics,
      inFlight,
      durableSequence: committer.durable,
    }),
    close: async () => {
      await retention.stop()
      await committer.drain()
      await pool.close()
      await store.close()
    },
  }
}

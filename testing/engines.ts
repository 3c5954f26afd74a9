/** The engine with real documents and real runners, for Functions given as source text. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocuments } from '../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../src/documents/store.ts'
import type { RequestsOptions } from '../src/engine/actions/outgoing-requests.ts'
import type { ConfigurationSource } from '../src/engine/calls/function-configuration.ts'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine } from '../src/engine/engine.ts'
import type { Release } from '../src/engine/releases/executable-release.ts'
import type { PoolLimits, RunnerPool } from '../src/engine/runners/runner-pool.ts'
import { DEFAULT_BUCKETS } from '../src/product/buckets/admission.ts'
import { type Files, openFilesOf } from '../src/product/files/files.ts'
import { FileBlobs } from '../src/storage/blobs/file-blobs.ts'
import { realSystem } from '../src/system/system.ts'
import type { MemoryLog } from '../src/telemetry/log.ts'
import type { Metrics } from '../src/telemetry/metrics/metrics.ts'
import { decodeTagged } from '../src/value/tagged.ts'
import type { Value, ValueObject } from '../src/value/values.ts'
import { parseDescription } from '../src/wire/files/manifest.ts'
import { TestConfiguration } from './configurations.ts'
import { testCursors, testKeyring } from './cursors.ts'
import { poolBench } from './runners.ts'

export interface EngineBench {
  readonly engine: Engine
  readonly files: Files
  readonly store: DocumentStore
  readonly pool: RunnerPool
  readonly log: MemoryLog
  readonly metrics: Metrics
  readonly release: Release
  /** Returns another Release over the same documents. */
  addRelease(functions: string, schema: string): Promise<Release>
  /** Returns the result as values. */
  call(name: string, input?: Record<string, Value>, options?: CallOptions): Promise<Value>
  close(): Promise<void>
}

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly operationId?: string
  /** Default: the Release of the bench. */
  readonly release?: Release
  /** Credential of the Application Key that the call came with. */
  readonly credentialId?: string
}

export interface BenchOptions {
  /** Text of the script before the Functions. */
  readonly prelude?: string
  readonly schema?: string
  readonly outbound?: RequestsOptions
  readonly configuration?: ConfigurationSource
  readonly limits?: Partial<PoolLimits>
  /** Bytes that stay free on the disk of files; default: none. */
  readonly freeFloorBytes?: number
}

const system = realSystem()

/** `functions` as `scriptOf` takes them. */
export async function engineBench(
  functions: string,
  options: BenchOptions = {},
): Promise<EngineBench> {
  const { schema, outbound, configuration = new TestConfiguration(), limits = {} } = options
  const { freeFloorBytes = 0 } = options
  const { pool, log, metrics, release: releaseOf } = poolBench({ limits })
  await pool.start({ sandbox: 'preferred' })
  const directory = mkdtempSync(join(tmpdir(), 'svc-engine-'))
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const issueGuest = () => 'nobody'
  const cursors = testCursors()
  const common = { system, log: log.log }
  const base = { store, pool, ...common, metrics, issueGuest, cursors, configuration }
  const blobs = await FileBlobs.open({ directory: join(directory, 'files'), freeFloorBytes })
  const storageKeys = { find: () => null }
  const { engine, files } = openFilesOf(
    { ...common, metrics, keyring: testKeyring(), buckets: DEFAULT_BUCKETS, storageKeys, blobs },
    (storage) => createEngine({ ...base, storage, ...(outbound && { outbound }) }),
  )
  const described = async (functions: string, schema?: string): Promise<Release> => {
    const written = releaseOf(functions, schema)
    const code = { ...written, source: `${options.prelude ?? ''}${written.source}` }
    const description = parseDescription(await engine.describe(code))
    return {
      ...code,
      functions: new Map(description.functions.map((each) => [each.name, each])),
      tables: new Map(description.tables.map((each) => [each.name, each])),
      migrations: new Map((description.migrations ?? []).map((each) => [each.name, each])),
    }
  }
  const release = await described(functions, schema)
  return {
    engine,
    files,
    store,
    pool,
    log,
    metrics,
    release,
    addRelease: described,
    async call(name, input = {}, options = {}) {
      const { signal, operationId = system.ids.make('opn'), credentialId } = options
      const { release: called = release } = options
      const definition = called.functions.get(`f.${name}`)!
      const known = credentialId === undefined ? {} : { credentialId }
      const context = { requestId: 'req_test', invocationId: 'ivc_test', ...known }
      const values = new Map(Object.entries(input)) as ValueObject
      const request = {
        release: called,
        definition,
        arguments: values,
        principal: null,
        context,
        signal,
      }
      const outcome = await (definition.kind === 'mutation'
        ? engine.mutation({ ...request, operationId, target: 'test', caller: 'test' })
        : engine[definition.kind](request))
      return decodeTagged(JSON.parse(outcome.resultText))
    },
    async close() {
      await files.close()
      await engine.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

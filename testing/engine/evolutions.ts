/**
 * Releases with different schemas over the same documents, for tests. Their handlers perform the
 * operations that they are called with, over a whole engine.
 */
import type { DocumentStore } from '../../src/documents/store.ts'
import type { ChangedDocument } from '../../src/engine/administration/document-administration.ts'
import type { CompactionOutcome } from '../../src/engine/administration/table-compactions.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Release } from '../../src/engine/releases/executable-release.ts'
import { indexDefinitions } from '../../src/engine/tables/physical-indexes.ts'
import type { Operation } from '../../src/runner/protocol/operations.ts'
import { realSystem } from '../../src/system/system.ts'
import { memoryLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { FunctionManifest, IndexManifest } from '../../src/value/manifest.ts'
import { EMPTY_SHAPE, type FieldShape, mergeShapes } from '../../src/value/schema/field-shapes.ts'
import { declaredShape } from '../../src/value/schema/undeclared-fields.ts'
import { encodeStored } from '../../src/value/stored.ts'
import { decodeTagged } from '../../src/value/tagged.ts'
import type { FieldsJson } from '../../src/value/validators.ts'
import type { Value, ValueObject } from '../../src/value/values.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import { noStorage } from '../files/function-storage.ts'
import { inProcessPool, type Loose, type TestHandler } from './in-process-pool.ts'

const system = realSystem()

/** An operation, or a pause until `Evolution.resume` is called. */
type Step = Operation | 'pause'

export const functionOf = (kind: 'query' | 'mutation'): FunctionManifest => ({
  name: `f.${kind}`,
  kind,
  visibility: 'public',
  clients: ['public'],
  auth: 'none',
  arguments: { operations: { type: 'string' } },
  returns: { type: 'any' },
  errors: {},
})

/** An engine over a store, and the Releases that use it. */
export class Evolution {
  engine: Engine
  store: DocumentStore
  /** Resolves when a call has arrived at its pause. */
  readonly paused = Promise.withResolvers<void>()
  readonly #resumed = Promise.withResolvers<void>()

  constructor(store: DocumentStore) {
    this.store = store
    const perform: TestHandler = async (context, { operations }) => {
      let result: Loose = null
      for (const step of JSON.parse(operations)) {
        if (step === 'pause') await this.#pause()
        else result = await context.send(step)
      }
      return result
    }
    const pool = inProcessPool({ 'f.query': perform, 'f.mutation': perform })
    const nothing = async () => undefined
    Object.assign(pool, { close: nothing, warm: nothing, retainOnly: () => undefined })
    Object.assign(pool, { markServed: () => undefined })
    const common = { system, log: memoryLog().log, metrics: new Metrics(system) }
    this.engine = createEngine({
      store,
      pool,
      ...common,
      storage: noStorage(),
      issueGuest: () => 'guest',
      cursors: testCursors(),
      configuration: new TestConfiguration(),
    })
  }

  async #pause(): Promise<void> {
    this.paused.resolve()
    await this.#resumed.promise
  }

  /** Continues all calls that are paused. */
  resume(): void {
    this.#resumed.resolve()
  }

  /** A Release with one table `users`. */
  release(fields: FieldsJson, ...indexes: IndexManifest[]): Side {
    const functions = [functionOf('query'), functionOf('mutation')]
    return new Side(this, {
      releaseId: system.ids.make('rel'),
      source: '',
      sourceMap: null,
      functions: new Map(functions.map((each) => [each.name, each])),
      tables: new Map([['users', { name: 'users', fields, indexes }]]),
    })
  }

  /** Forgets Releases as the collection of retired ones does. */
  async retire(...live: readonly Side[]): Promise<void> {
    const releases = live.map(({ release }) => release)
    const definitions = new Map(
      releases.map((each) => [each.releaseId, indexDefinitions(each.tables.values())]),
    )
    await this.engine.retainOnly(definitions, () => undefined)
  }

  /** The stored fields of a document, regardless of any Release. */
  async stored(id: string): Promise<Loose> {
    const found = await this.store.read(id, this.store.latestSequence)
    return found === null ? null : JSON.parse(found.text)
  }
}

export interface CompactOptions {
  readonly dryRun?: boolean
  /** The Releases in use. Default: this one. */
  readonly declared?: readonly Release[]
}

/** One Release, as its Functions and operators use it. */
export class Side {
  readonly release: Release
  readonly #evolution: Evolution

  constructor(evolution: Evolution, release: Release) {
    this.#evolution = evolution
    this.release = release
  }

  async #call(kind: 'query' | 'mutation', operations: readonly Step[]): Promise<Loose> {
    const { engine } = this.#evolution
    const request = {
      release: this.release,
      definition: functionOf(kind),
      arguments: new Map([['operations', JSON.stringify(operations)]]),
      principal: null,
      context: { requestId: 'req_test', invocationId: 'ivc_test' },
    }
    const mutation = { operationId: system.ids.make('opn'), target: 'test', caller: 'test' }
    const { resultText } = await (kind === 'query'
      ? engine.query(request)
      : engine.mutation({ ...request, ...mutation }))
    return JSON.parse(encodeStored(decodeTagged(JSON.parse(resultText))))
  }

  query(...steps: readonly Step[]): Promise<Loose> {
    return this.#call('query', steps)
  }

  mutate(...operations: readonly Operation[]): Promise<Loose> {
    return this.#call('mutation', operations)
  }

  insert(fields: Loose): Promise<string> {
    return this.mutate(['insert', 'users', fields])
  }

  patch(id: string, fields: Loose, removed: readonly string[] = []): Promise<Loose> {
    return this.mutate(['patch', id, fields, [...removed]])
  }

  replace(id: string, fields: Loose): Promise<Loose> {
    return this.mutate(['replace', id, fields])
  }

  async get(id: string): Promise<Loose> {
    return withoutSystem(await this.#call('query', [['get', id]]))
  }

  async list(request: Loose = {}): Promise<Loose[]> {
    const range = { table: 'users', index: null, equal: [], order: 'asc', limit: 100, ...request }
    const { documents } = await this.#call('query', [['range', { ...range, next: 'plain' }]])
    return documents.map(withoutSystem)
  }

  /** Changes a document as an operator does. */
  change(
    documentId: string,
    kind: 'insert' | 'replace',
    value: Record<string, Value>,
    expectedRevision = 0,
  ): Promise<ChangedDocument> {
    const operationId = system.ids.make('opn')
    const createdAtMicros = 5n
    const fields = { value: new Map(Object.entries(value)) as ValueObject, createdAtMicros }
    return this.#evolution.engine.administration.change(this.release, {
      operationId,
      fingerprint: operationId,
      change: { table: 'users', documentId, kind, expectedRevision, ...fields },
      requestId: 'req_test',
    })
  }

  /** Compacts the table until nothing is left. Returns the sum of what was done. */
  async compact({ dryRun = false, declared = [this.release] }: CompactOptions = {}) {
    const total = { read: 0, changed: 0, removedFields: 0 }
    let after: string | undefined
    do {
      const batch = await this.compactBatch({ dryRun, declared }, after)
      total.read += batch.read
      total.changed += batch.changed
      total.removedFields += batch.removedFields
      after = batch.next ?? undefined
    } while (after !== undefined)
    return total
  }

  /** Sends one request of a compaction; `declared` are the Releases in use. */
  compactBatch(
    { dryRun = false, declared = [this.release] }: CompactOptions,
    after: string | undefined,
    operationId: string = system.ids.make('opn'),
  ): Promise<CompactionOutcome> {
    const shapes = declared.map(({ tables }) => declaredShape(tables.get('users')!.fields))
    return this.#evolution.engine.administration.compact(this.release, {
      operationId,
      fingerprint: `${operationId} ${after}`,
      table: 'users',
      dryRun,
      after,
      declared: async () => shapes.reduce<FieldShape>(mergeShapes, EMPTY_SHAPE),
      requestId: 'req_test',
    })
  }

  read(id: string) {
    return this.#evolution.engine.administration.read(this.release, 'users', id)
  }

  /** The prepared table, as the engine holds it. */
  async table() {
    const { tables } = await this.#evolution.engine.prepare(this.release)
    return tables.get('users')!
  }
}

export function withoutSystem(document: Loose): Loose {
  if (document === null) return null
  return Object.fromEntries(Object.entries(document).filter(([name]) => !name.startsWith('_')))
}

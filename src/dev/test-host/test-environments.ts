/** Opens Environments for tests: the engine over a temporary SQLite file and a simulated clock. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { documentText } from '../../engine/calls/document-text.ts'
import { createEngine } from '../../engine/create-engine.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RunnerPool } from '../../engine/runners/runner-pool.ts'
import type { CronActivation } from '../../engine/scheduling/crons/crons.ts'
import { ManualTimers } from '../../engine/scheduling/timers.ts'
import { Fault } from '../../errors/fault.ts'
import { admittedPrincipal } from '../../http/application/callers.ts'
import { DEFAULT_BUCKETS } from '../../product/buckets/admission.ts'
import { plannedCrons } from '../../product/crons/crons-in-force.ts'
import { type Files, openFilesOf } from '../../product/files/files.ts'
import { FunctionalTokens } from '../../product/functional-tokens/tokens.ts'
import { MemoryBlobs } from '../../storage/blobs/memory-blobs.ts'
import { Cursors } from '../../storage/cursors.ts'
import { Keyring } from '../../storage/keyring.ts'
import { sha256 } from '../../system/digests.ts'
import { createLog, type LogRecord } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { type FunctionalIdentity, type Principal, principalOf } from '../../value/identities.ts'
import { encodeUlid } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import { decodeStored } from '../../value/stored.ts'
import { decodeTagged, encodeTagged } from '../../value/tagged.ts'
import type { ValueObject } from '../../value/values.ts'
import type {
  Caller,
  CallRequest,
  DeliverRequest,
  MigratedDocuments,
  OpenRequest,
  ScheduledEntry,
  StoredDelivery,
} from '../../wire/test-kit.ts'
import { SimulatedClock, SimulatedSystem } from './simulated-system.ts'
import { SimulatedTime } from './simulated-time.ts'
import { type AskTest, stubbedFetch } from './stubbed-fetch.ts'
import { storeDelivery } from './test-deliveries.ts'
import type { TestRelease } from './workspace-releases.ts'

export interface TestEnvironmentOptions {
  readonly request: OpenRequest
  readonly release: Promise<TestRelease>
  /** The runners of all environments. The pool outlives this one. */
  readonly pool: RunnerPool
  /** The directory for temporary files. */
  readonly directory: string
  readonly ask: AskTest
  readonly onRecord: (record: LogRecord) => void
}

/** The IDs by which the failures of a call are found in the log. */
export interface CallIds {
  readonly requestId: string
  /** The operation ID of a Mutation; null for other calls. */
  readonly operationId: string | null
}

/** Simulated duration of a call, so that documents of successive calls differ in `_createdAt`. */
const CALL_MILLIS = 1
/** A time that exceeds the lifetime of every cached result. */
const RESULT_MILLIS = 1e12
const SCHEDULED_PAGE = 1_000

interface Parts {
  readonly engine: Engine
  readonly files: Files
  readonly system: SimulatedSystem
  readonly clock: SimulatedClock
  readonly time: SimulatedTime
  readonly tokens: FunctionalTokens
  readonly keyring: Keyring
  readonly secret: (name: string) => Secret | null
  readonly environmentId: string
  readonly seed: number
  readonly directory: string
}

export class TestEnvironment {
  readonly release: TestRelease
  readonly #parts: Parts
  /** Keyed by the names of the Crons. */
  readonly #activations = new Map<string, CronActivation>()
  #isMigrating = false

  private constructor(release: TestRelease, parts: Parts) {
    this.release = release
    this.#parts = parts
  }

  /** Opens an environment. Throws what the build of the Workspace throws. */
  static async open(options: TestEnvironmentOptions): Promise<TestEnvironment> {
    const parts = await openParts(options)
    try {
      const environment = new TestEnvironment(await options.release, parts)
      await environment.#start()
      return environment
    } catch (error) {
      await closeParts(parts)
      throw error
    }
  }

  get nowMicros(): bigint {
    return this.#parts.system.nowMicros()
  }

  async #start(): Promise<void> {
    const { scheduler } = this.#parts.engine
    const release = this.release
    scheduler.start({ load: async () => release, admits: () => this.#parts.time.admits })
    const crons = plannedCrons({ functions: release.functions, manifest: release.description })
    for (const { name } of crons) this.#activations.set(name, { revision: 0n, isEnabled: true })
    const activationOf = (name: string) => this.#activations.get(name)!
    scheduler.crons.follow({ releaseId: release.releaseId, crons, activationOf })
    // The intervals of Crons begin at this time.
    await this.#parts.time.advance(0)
  }

  newIds(request: CallRequest | DeliverRequest): CallIds {
    const { ids } = this.#parts.system
    const isMutation = request.kind === 'call' && request.functionKind === 'mutation'
    const operationId = isMutation ? ids.make('opn') : null
    return { requestId: ids.make('req'), operationId }
  }

  /** Calls a Function. Returns the result as tagged JSON, and throws what an application sees. */
  async call(request: CallRequest, { requestId, operationId }: CallIds): Promise<string> {
    const release = this.release
    const definition = release.functions.get(request.function)
    if (definition?.kind !== request.functionKind) {
      const detail = `There is no ${request.functionKind} ${request.function}.`
      throw new Fault('FUNCTION_NOT_FOUND', { detail })
    }
    const presented = await this.#principalOf(request.caller)
    const principal = admittedPrincipal(definition.auth, presented)
    const values = decodeTagged(request.arguments) as ValueObject
    const context = { requestId, invocationId: this.#parts.system.ids.make('ivc') }
    const call = { release, definition, arguments: values, principal, context }
    const { moves } = this.#parts.clock
    try {
      const { resultText } = await (operationId === null
        ? this.#parts.engine[definition.kind === 'query' ? 'query' : 'action'](call)
        : this.#parts.engine.mutation({ ...call, operationId, target: 'test', caller: 'test' }))
      return resultText
    } finally {
      // A Mutation has moved the clock itself.
      if (this.#parts.clock.moves === moves) this.#parts.clock.move(CALL_MILLIS)
    }
  }

  /** Stores an event of another service. Its handler runs when the clock is advanced. */
  async deliver(request: DeliverRequest, { requestId }: CallIds): Promise<StoredDelivery> {
    const { system, clock } = this.#parts
    const context = { requestId, invocationId: system.ids.make('ivc') }
    const { moves } = clock
    try {
      return await storeDelivery(this.#parts, this.release, { context, request })
    } finally {
      if (clock.moves === moves) clock.move(CALL_MILLIS)
    }
  }

  /** Advances the clock and runs due work. `crons` names the enabled Crons; null enables all. */
  async advance(millis: number, crons: readonly string[] | null): Promise<void> {
    const unknown = crons?.find((name) => !this.#activations.has(name))
    if (unknown !== undefined) {
      throw new Fault('REQUEST_INVALID', { detail: `crons.ts has no Cron ${unknown}` })
    }
    await this.#parts.time.advance(millis, () => this.#enableCrons(crons))
  }

  /** Returns all scheduled work in the order of its creation. */
  async scheduled(): Promise<ScheduledEntry[]> {
    const entries: ScheduledEntry[] = []
    let after: string | null = null
    do {
      const page = await this.#parts.engine.scheduler.list(after, SCHEDULED_PAGE)
      for (const work of page.items) {
        const { scheduledId: id, function: name, state, attempts, lastErrorCode, cron } = work
        const dueAtMicros = String(work.dueAtMicros)
        const hook = work.http?.route ?? null
        entries.push({
          id,
          function: name,
          state,
          attempts,
          dueAtMicros,
          lastErrorCode,
          cron,
          hook,
        })
      }
      after = page.nextId
    } while (after !== null)
    return entries
  }

  /** Returns the documents of a table in the order of their creation, as tagged JSON. */
  async documents(table: string): Promise<string> {
    const { tables, scan } = await this.#parts.engine.prepare(this.release)
    const prepared = tables.get(table)
    if (prepared === undefined) {
      throw new Fault('REQUEST_INVALID', { detail: `the schema has no table ${table}` })
    }
    const texts: string[] = []
    for await (const document of scan(prepared.creationOrder)) {
      texts.push(encodeTagged(decodeStored(documentText(document))))
    }
    return `{"type":"array","value":[${texts.join()}]}`
  }

  /** Runs a migration. Throws FUNCTION_FAILED with the document that stopped it. */
  async migrate(name: string): Promise<MigratedDocuments> {
    const { migrations } = this.#parts.engine
    const { release } = this
    const migration = release.migrations?.get(name)
    if (migration === undefined) {
      throw new Fault('REQUEST_INVALID', { detail: `migrations.ts has no migration ${name}` })
    }
    // Reading the records draws from the random sequence of the calls.
    if (!this.#isMigrating) migrations.start({ load: async () => release, admits: () => true })
    this.#isMigrating = true
    const { isAllowed } = await migrations.act('run', release, migration)
    if (!isAllowed) await migrations.act('resume', release, migration)
    const { record, failure } = await migrations.whenStopped(migration)
    if (record.state !== 'complete') {
      const detail = `The migration ${name} stopped at ${record.lastDocumentId}: ${failure}`
      throw new Fault('FUNCTION_FAILED', { detail })
    }
    return { processed: String(record.processed), changed: String(record.changed) }
  }

  async close(): Promise<void> {
    await closeParts(this.#parts)
  }

  /** Enables these Crons and disables the others, as an operator would. */
  #enableCrons(names: readonly string[] | null): void {
    for (const [name, { revision, isEnabled }] of this.#activations) {
      const isWanted = names === null || names.includes(name)
      if (isWanted === isEnabled) continue
      // With a new revision a Cron waits for its next time, and does not run for missed ones.
      this.#activations.set(name, { revision: revision + 1n, isEnabled: isWanted })
    }
  }

  async #principalOf(caller: Caller): Promise<Principal | null> {
    if (caller === null) return null
    if (caller.kind === 'guest' && 'token' in caller) return this.#parts.tokens.verify(caller.token)
    const identity = caller.kind === 'guest' ? this.#guest(caller.number) : caller
    return {
      kind: identity.kind,
      key: principalOf(identity),
      identityText: JSON.stringify(identity),
    }
  }

  #guest(number: number): FunctionalIdentity {
    const entropy = sha256(`guest/${this.#parts.seed}/${number}`)
    const subject = `gst_${encodeUlid(0, entropy)}`
    return { kind: 'guest', subject, issuer: this.#parts.environmentId }
  }
}

async function openParts({
  request,
  pool,
  ask,
  onRecord,
  directory: parent,
}: TestEnvironmentOptions): Promise<Parts> {
  const { seed } = request
  const clock = new SimulatedClock(Number(BigInt(request.nowMicros) / 1_000n))
  const system = new SimulatedSystem(clock, `calls/${seed}`)
  // Background tasks draw from their own random sequence, so that calls are repeatable.
  const background = new SimulatedSystem(clock, `background/${seed}`)
  const environmentId = system.ids.make('env')
  const keyring = new Keyring(keyringOf(seed, system.nowMicros()), environmentId)
  const tokens = new FunctionalTokens({ providers: new Map(), keyring, environmentId, system })
  const sink = (line: string) => onRecord(JSON.parse(line) as LogRecord)
  const shared = { log: createLog({ system, level: 'debug', sink }), metrics: new Metrics(system) }
  const timers = new ManualTimers(clock, Number.POSITIVE_INFINITY)
  const directory = mkdtempSync(join(parent, 'environment-'))
  const file = { mayBeNew: true, isTemporary: true }
  const configuration = configurationOf(request)
  const store = await openSqliteDocuments(join(directory, 'documents.db'), file)
  // Applies to calls by Actions too. Scheduled work instead runs at its due time.
  const afterMutation = () => {
    if (!time.admits) clock.move(CALL_MILLIS)
  }
  const { engine, files } = openFilesOf(
    {
      ...shared,
      system: background,
      keyring,
      buckets: DEFAULT_BUCKETS,
      storageKeys: { find: () => null },
      blobs: new MemoryBlobs(),
    },
    (storage) =>
      createEngine({
        ...shared,
        system,
        store,
        storage,
        timers,
        pool: keptOpen(pool, afterMutation),
        // A result that depends on the time is stale once the clock has moved.
        resultClock: { monotonicMillis: () => clock.moves * RESULT_MILLIS },
        issueGuest: (guest) => tokens.issueGuest(guest),
        cursors: new Cursors(keyring),
        configuration,
        outbound: {
          allowedNetworks: [],
          substitute: { fetch: (sent) => stubbedFetch(ask, sent) },
        },
      }),
  )
  const time = new SimulatedTime(clock, timers, engine.scheduler)
  const { secret } = configuration.current
  const shown = { tokens, keyring, secret, environmentId, seed, directory }
  return { engine, files, system, clock, time, ...shown }
}

async function closeParts({ files, engine, directory }: Parts): Promise<void> {
  try {
    await files.close()
    await engine.close()
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function keyringOf(seed: number, createdAtMicros: bigint) {
  const key = new Uint8Array(sha256(`keyring/${seed}`))
  return { version: 1, active: 'k1', keys: [{ id: 'k1', key, createdAtMicros }] } as const
}

function configurationOf({ variables, secrets }: OpenRequest) {
  const find = (texts: Readonly<Record<string, string>>, name: string) =>
    Object.hasOwn(texts, name) ? texts[name]! : null
  const current = {
    variable: (name: string) => find(variables, name),
    secret(name: string) {
      const text = find(secrets, name)
      return text === null ? null : new Secret(text)
    },
  }
  return { current, onChange: () => undefined }
}

/** Wraps the pool so that closing one engine leaves the shared runners open. */
function keptOpen(pool: RunnerPool, afterMutation: () => void): RunnerPool {
  return {
    start: (rule) => pool.start(rule),
    async invoke(code, call, host) {
      const outcome = await pool.invoke(code, call, host)
      if (call.kind === 'mutation') afterMutation()
      return outcome
    },
    describe: (code) => pool.describe(code),
    warm: (code, roles) => pool.warm(code, roles),
    isWarm: (releaseId, roles) => pool.isWarm(releaseId, roles),
    statistics: () => pool.statistics(),
    actionBacklogBytes: () => pool.actionBacklogBytes(),
    pids: () => pool.pids(),
    usage: () => pool.usage(),
    forget: () => undefined,
    markServed: () => undefined,
    trim: () => undefined,
    retainOnly: () => undefined,
    close: async () => undefined,
  }
}

/**
 * Fuzzes the server's side of a runner with arbitrary messages at arbitrary times. Method: only the
 * messages of a process exist, over a real transaction. Every call ends, and never by an internal
 * failure.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { fuzz, mutatedJson, type Random } from '../../../testing/fuzzing/fuzz.ts'
import { VALID_MESSAGES } from '../../../testing/hostile/messages.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { isFault } from '../../errors/fault.ts'
import type { RunnerEvents, RunnerProcess } from '../../runner/processes.ts'
import { decodeFromRunner } from '../../runner/protocol/messages.ts'
import { realSystem } from '../../system/system.ts'
import { createLog } from '../../telemetry/log.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { RunnerCall, RunnerHost } from '../calls/outcomes.ts'
import { TransactionHost } from '../invocations/transaction-host.ts'
import type { Release } from '../releases/executable-release.ts'
import { type PreparedRelease, prepareRelease } from '../releases/prepared-release.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { Transaction } from '../transactions/transaction.ts'
import type { RunnerLimits } from './ports.ts'
import { Runner } from './runner.ts'

const LIMITS: RunnerLimits = {
  actionCpuMillis: 60_000,
  callCpuMillis: 1_000,
  loadCpuMillis: 2_000,
  callGrowthBytes: 64e6,
  runnerGrowthBytes: 256e6,
  processGrowthBytes: 512e6,
  processThreads: 256,
  unexplainedCpuMillis: 10_000,
  resultBytes: 1e6,
  sentCharacters: 1e6,
  fixedClock: false,
  operations: 8,
  backlogBytes: 100,
  deferredCharacters: 1_000,
  startMillis: 1_000,
}
const KINDS = [
  'returned',
  'failed',
  'threw',
  'limit',
  'broken',
  'deadline',
  'lost',
  'misspeculated',
]
const ID = 't_01ARZ3NDEKTSV4RRFFQ69G5FAV'

const directory = mkdtempSync(join(tmpdir(), 'svc-runner-fuzz-'))
const real = realSystem()
const log = createLog({ system: real, sink: () => undefined, level: 'error' })
const release: Release = {
  releaseId: real.ids.make('rel'),
  source: '',
  sourceMap: null,
  functions: new Map(),
  tables: new Map([
    [
      't',
      {
        name: 't',
        fields: { f: { type: 'optional', inner: { type: 'any' } } },
        indexes: [{ name: 'i', fields: ['f'], unique: true }],
      },
    ],
  ]),
}
let store: DocumentStore
let prepared: PreparedRelease
beforeAll(async () => {
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  const indexes = await store.ensureIndexes([
    { table: 't', fields: [] },
    { table: 't', fields: ['f'] },
  ])
  for (const { id } of indexes) await store.buildIndex(id)
  prepared = prepareRelease(release, indexes)
})
afterAll(async () => {
  await store.close()
  rmSync(directory, { recursive: true })
})

function hostOf(random: Random): RunnerHost {
  const transaction = new Transaction({
    store,
    release: prepared,
    snapshot: 0,
    pending: null,
    nowMicros: 1_800_000_000_000_000n,
    seed: '00'.repeat(32),
    writable: random.chance(2),
  })
  const log = { add: () => undefined }
  const shared = {
    prepared,
    transaction,
    log,
    reads: null,
    failures: null,
    count: 0,
    characters: 0,
  }
  const nobody = {
    cursors: testCursors(),
    principal: null,
    issueGuest: () => 'guest',
    storage: noStorage(),
    pendingWork: new PendingWork(),
    schedules: 0,
    grantSeconds: null,
    usedIdentity: false,
  }
  const unset = { configuration: new TestConfiguration().current, usedConfiguration: false }
  const unused = { ...unset, usedClock: false, usedRandom: false }
  return new TransactionHost({ ...shared, ...nobody, ...unused }, CALL)
}

/** A process of which only the messages exist. */
function makeRunner(random: Random) {
  let now = 0
  let events: RunnerEvents | null = null
  let killed = false
  const ignore = () => undefined
  const process: RunnerProcess = {
    pid: 1,
    load: ignore,
    describe: ignore,
    invoke: ignore,
    reply: ignore,
    reject: ignore,
    documents: ignore,
    forget: ignore,
    trim: ignore,
    cancel: ignore,
    flush: ignore,
    isContained: () => null,
    isRunnable: () => false,
    processCpuMicros: () => null,
    threads: () => 0,
    shareProcessor: ignore,
    sentBytes: 0,
    sentFrames: 0,
    get backlogBytes() {
      return random.below(150)
    },
    kill() {
      killed = true
    },
    progress: () => ({
      call: random.pick([0, 1, 2, 77, 2 ** 32 - 1]),
      segment: random.below(3),
      spentMicros: random.pick([0, 1, Number.NaN, Number.NEGATIVE_INFINITY, 1e300]),
    }),
    usage: () => ({ cpuMicros: random.pick([null, 0, 1e9]), residentBytes: random.below(1e9) }),
  }
  const runner = new Runner({
    system: { ...real, monotonicMillis: () => now } as typeof real,
    log,
    spawn: (given) => {
      events = given
      return process
    },
    limits: LIMITS,
    onEnd: ignore,
  })
  return {
    runner,
    events: events!,
    wasKilled: () => killed,
    pass: (millis: number) => {
      now += millis
    },
  }
}

const CALL: RunnerCall = {
  function: 'f.x',
  kind: 'query',
  argumentsText: '{}',
  identityText: 'null',
  nowMicros: 0n,
  seed: '00'.repeat(32),
  deadline: 5_000,
}

/** A message about one of the calls, bent or not. */
function messageOf(random: Random): string {
  const message = [...structuredClone(random.pick(VALID_MESSAGES))] as unknown[]
  if (typeof message[1] === 'number') message[1] = random.pick([1, 1, 2, 3, 4, 9])
  const json = random.chance(2) ? message : mutatedJson(random, message)
  return JSON.stringify(json).replaceAll('"x_1"', `"${ID}"`)
}

function say({ events }: ReturnType<typeof makeRunner>, text: string): void {
  try {
    events.onMessage(decodeFromRunner(text), text.length)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    events.onMalformed(error.message)
  }
}

fuzz(
  'whatever a runner says, every call ends, and never by an internal failure',
  async (random) => {
    const it = makeRunner(random)
    const { runner } = it
    if (!random.chance(20)) say(it, JSON.stringify(VALID_MESSAGES[1]))
    const loading = runner.load(release, 'transactions')
    if (!random.chance(20)) say(it, '["loaded"]')
    const calls = Array.from({ length: 3 }, () => {
      const call = random.chance(2) ? CALL : { ...CALL, prefetched: [] }
      return runner.invoke(call, hostOf(random))
    })
    const describing = runner.describe()
    const ends = calls.map((call) =>
      call.then(
        ({ kind }) => kind,
        (error: unknown) => {
          if (!isFault(error, 'LIMIT_EXCEEDED')) throw error
          return 'limit'
        },
      ),
    )
    for (let rounds = random.below(10); rounds >= 0; rounds--) {
      say(it, messageOf(random))
      // The documents answer in between, or after everything is over.
      if (random.chance(4)) await new Promise((resolve) => setImmediate(resolve))
      if (random.chance(6)) runner.tick()
      if (random.chance(10)) it.pass(random.below(4_000))
    }
    if (random.chance(2)) it.events.onExit({ signal: 9, code: null, residentBytesMax: null })
    else runner.stop()
    for (const kind of await Promise.all(ends)) if (!KINDS.includes(kind)) expect.fail(kind)
    await Promise.all([loading, describing, runner.hello])
    if (!runner.isEnded || !it.wasKilled()) expect.fail('it goes on')
  },
)

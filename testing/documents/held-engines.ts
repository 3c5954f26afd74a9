/** An engine over a SQLite file whose commits wait for the test, with Mutations of accounts. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Release } from '../../src/engine/releases/executable-release.ts'
import { realSystem } from '../../src/system/system.ts'
import { memoryLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import type { FunctionManifest, TableManifest } from '../../src/value/manifest.ts'
import { decodeTagged } from '../../src/value/tagged.ts'
import { TypedId, type Value } from '../../src/value/values.ts'
import { TestConfiguration } from '../configurations.ts'
import { testCursors } from '../cursors.ts'
import {
  DeclaredFailure,
  inProcessPool,
  type Loose,
  type TestHandler,
} from '../engine/in-process-pool.ts'
import { noStorage } from '../files/function-storage.ts'
import { heldStore } from './held-stores.ts'

const ACCOUNTS: TableManifest = {
  name: 'accounts',
  fields: { balance: { type: 'int64' } },
  indexes: [{ name: 'byBalance', fields: ['balance'], unique: false }],
}

const system = realSystem()
export const int = (value: number) => ({ $i: String(value) })
/** Waits until the next iteration of the event loop. */
export const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve))
/** Waits long enough for every call that does not wait for the store. */
export const tenIterations = async () => {
  for (let i = 0; i < 10; i++) await nextIteration()
}

function manifestOf(name: string): FunctionManifest {
  return {
    name,
    kind: 'mutation',
    auth: 'none',
    visibility: 'public',
    clients: ['public'],
    arguments: { input: { type: 'optional', inner: { type: 'any' } } },
    returns: { type: 'any' },
    errors: { NO_FUNDS: 'conflict', UNEVEN: 'conflict' },
  }
}

/** `handlers` are Mutations in addition to HANDLERS; `before` runs before each commit. */
export async function heldEngine(
  handlers: Readonly<Record<string, TestHandler>>,
  before?: () => Promise<void>,
  commitMillisMax = 10_000,
) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-dependent-'))
  const held = heldStore(await openSqliteDocuments(join(directory, 'documents.db')), before)
  const all = { ...HANDLERS, ...handlers }
  const pool = inProcessPool(all)
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  const metrics = new Metrics(system)
  const engine = createEngine({
    store: held.store,
    pool,
    system,
    log: memoryLog().log,
    metrics,
    commitMillisMax,
    issueGuest: () => 'nobody',
    storage: noStorage(),
    cursors: testCursors(),
    configuration: new TestConfiguration(),
  })
  const release: Release = {
    releaseId: system.ids.make('rel'),
    source: '',
    sourceMap: null,
    functions: new Map(Object.keys(all).map((name) => [name, manifestOf(name)])),
    tables: new Map([['accounts', ACCOUNTS]]),
  }
  const request = (name: string, input: Value) => ({
    release,
    definition: release.functions.get(name)!,
    arguments: new Map([['input', input]]),
    principal: null,
    context: { requestId: 'req_test', invocationId: 'ivc_test' },
  })
  const call = (name: string, input: Value = null, operationId = system.ids.make('opn')) => {
    const operation = { operationId, target: 'channel:test', caller: 'app/crd' }
    return engine.mutation({ ...request(name, input), ...operation })
  }
  /** Runs the same code as a Query. */
  const query = async (name: string, input: Value = null) => engine.query(request(name, input))
  const account = async (balance: number): Promise<TypedId> => {
    const { resultText } = await call('open', balance)
    const id = decodeTagged(JSON.parse(resultText)) as string
    return new TypedId(id)
  }
  const close = async () => {
    held.release()
    await engine.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return { held, engine, pool, metrics, call, query, account, close }
}

/** Returns the text of a typed ID in stored JSON, `{"$d":...}`. */
export const idOf = (input: Loose): string => input.$d

const HANDLERS: Readonly<Record<string, TestHandler>> = {
  open: (db, { input }) => db.insert('accounts', { balance: int(input) }),
  set: (db, { input: [id, balance] }) => db.patch(idOf(id), { balance: int(balance) }),
  add: async (db, { input }) => {
    const { balance, _revision } = await db.get(idOf(input))
    await db.patch(idOf(input), { balance: int(Number(balance.$i) + 1) })
    return { seen: balance, revision: _revision }
  },
  read: async (db, { input }) => (await db.get(idOf(input)))?.balance ?? null,
  spend: async (db, { input }) => {
    const { balance } = await db.get(idOf(input))
    if (balance.$i === '0') throw new DeclaredFailure('NO_FUNDS')
    return null
  },
  crash: async (db, { input }) => {
    const { balance } = await db.get(idOf(input))
    if (balance.$i === '0') throw new TypeError('author')
    return null
  },
}

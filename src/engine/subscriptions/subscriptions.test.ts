import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { inProcessPool, type TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { SEED } from '../../../testing/seeds.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { Fault } from '../../errors/fault.ts'
import { MemoryBudget } from '../../system/memory/memory-budget.ts'
import { realSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionManifest, TableManifest } from '../../value/manifest.ts'
import { decodeTagged } from '../../value/tagged.ts'
import type { Value, ValueObject } from '../../value/values.ts'
import { createEngine } from '../create-engine.ts'
import type { Engine } from '../engine.ts'
import type { Release } from '../releases/executable-release.ts'
import type { QueryState } from './live-query.ts'

const ROOMS: TableManifest = {
  name: 'messages',
  fields: { room: { type: 'string' }, body: { type: 'string' } },
  indexes: [{ name: 'byRoom', fields: ['room'], unique: false }],
}

const system = realSystem()
const context = { requestId: 'req_test', invocationId: 'ivc_test' }
const memory = new MemoryBudget(1024 ** 3).shareOf({ credential: null, peer: 'test' })
const ANA = principal('ana')
const BEN = principal('ben')

/** Runs of each Query by its arguments. */
let runs: string[]
/** Thrown by every Query while it is set. */
let failure: Fault | null
let showsIdentity: boolean
/** Times of a machine that does other work as well. */
const BUSY = { timeout: 60_000 }
/** Held by each run of a list before it returns, while it is set. */
let held: PromiseWithResolvers<void> | null
let configuration: TestConfiguration
let engine: Engine
let release: Release
let directory: string

const handlers: Record<string, TestHandler> = {
  list: async (db, { input }) => {
    runs.push(`list ${input}`)
    if (failure !== null) throw failure
    const request = { table: 'messages', index: 'byRoom', equal: [input], limit: 1_000 }
    const { documents } = await db.range(request)
    await held?.promise
    return documents.map(({ body }: { body: string }) => body)
  },
  mine: async (db, { input }) => {
    runs.push(`mine ${input}`)
    const caller = showsIdentity ? db.identity().subject : 'caller'
    const { documents } = await db.range({ table: 'messages', index: 'byRoom', equal: [input] })
    return `${caller} ${documents.length}`
  },
  greeting: async (db) => {
    runs.push('greeting')
    return db.send(['config', 'variable', 'GREETING'])
  },
  send: (db, { input }) => db.insert('messages', { room: input[0], body: input[1] }),
  edit: (db, { input }) => db.patch(input[0], { body: input[1] }),
  remove: (db, { input }) => db.delete(input),
}

beforeEach(async () => {
  runs = []
  failure = null
  held = null
  showsIdentity = false
  configuration = new TestConfiguration()
  directory = mkdtempSync(join(tmpdir(), 'svc-subscriptions-'))
  const pool = inProcessPool(handlers)
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  engine = createEngine({
    store: await openSqliteDocuments(join(directory, 'documents.db')),
    pool,
    system,
    log: memoryLog().log,
    metrics: new Metrics(system),
    issueGuest: () => 'guest',
    configuration,
    cursors: testCursors(),
    storage: noStorage(),
  })
  release = releaseOf()
})
afterEach(async () => {
  await engine.close()
  rmSync(directory, { recursive: true, force: true })
})

function releaseOf(): Release {
  const queries = ['list', 'mine', 'greeting']
  const definitions = Object.keys(handlers).map((name): [string, FunctionManifest] => [
    name,
    {
      name,
      visibility: 'public',
      clients: ['public'],
      auth: 'optional',
      errors: {},
      kind: queries.includes(name) ? 'query' : 'mutation',
      arguments: { input: { type: 'optional', inner: { type: 'any' } } },
      returns: { type: 'any' },
    },
  ])
  return {
    releaseId: system.ids.make('rel'),
    source: '',
    sourceMap: null,
    functions: new Map(definitions),
    tables: new Map([['messages', ROOMS]]),
  }
}

function principal(subject: string): Principal {
  return { kind: 'user', key: subject, identityText: JSON.stringify({ kind: 'user', subject }) }
}

function request(name: string, input: Value, caller: Principal | null = null) {
  const values: ValueObject = new Map([['input', input]])
  const definition = release.functions.get(name)!
  return { release, definition, arguments: values, principal: caller, context, memory }
}

async function mutate(name: string, input: Value) {
  const operationId = system.ids.make('opn')
  const more = { operationId, target: 'test', caller: 'test' }
  const { resultText, commitSequence } = await engine.mutation({ ...request(name, input), ...more })
  return { value: decodeTagged(JSON.parse(resultText)) as string, sequence: commitSequence! }
}

const send = (room: string, body: string) => mutate('send', [room, body])

interface Watched {
  readonly states: { readonly value: Value; readonly sequence: number | null }[]
  readonly faults: Fault[]
  readonly subscription: ReturnType<Engine['watch']>
}

function watch(name: string, input: Value, caller: Principal | null = null): Watched {
  const states: Watched['states'] = []
  const faults: Fault[] = []
  const subscription = engine.watch(request(name, input, caller), {
    state: ({ resultText, snapshotSequence }: QueryState) => {
      const value = decodeTagged(JSON.parse(resultText))
      states.push({ value, sequence: snapshotSequence })
    },
    failed: (fault) => faults.push(fault),
  })
  return { states, faults, subscription }
}

/** Waits until the subscription has shown all that is durable. */
async function settled(...watched: Watched[]): Promise<void> {
  const { durableSequence } = engine.statistics()
  for (const { subscription, faults } of watched) {
    const isSettled = () => faults.length > 0 || subscription.currentAt >= durableSequence
    await vi.waitFor(() => expect(isSettled()).toBe(true), BUSY)
  }
}

/** Documents that are created within one millisecond have no order. */
const sorted = (value: Value) => (value as string[]).toSorted()

const values = ({ states }: Watched) => states.map(({ value }) => value)

test('a subscription receives its first state and every state with other bytes', async () => {
  const { value: id } = await send('a', 'one')
  const watched = watch('list', 'a')
  await settled(watched)
  await mutate('edit', [id, 'two'])
  await settled(watched)
  await mutate('edit', [id, 'two'])
  await settled(watched)
  const { sequence } = await send('a', 'three')
  await settled(watched)
  expect(values(watched)).toEqual([['one'], ['two'], ['two', 'three']])
  expect(watched.states.at(-1)!.sequence).toBe(sequence)
  expect(runs).toHaveLength(4)
})

test('a Query runs once per commit, however many subscriptions watch it', async () => {
  const watched = Array.from({ length: 100 }, () => watch('list', 'a'))
  await settled(...watched)
  expect(runs).toHaveLength(1)
  await send('a', 'one')
  await settled(...watched)
  expect(runs).toHaveLength(2)
  for (const each of watched) expect(values(each)).toEqual([[], ['one']])
  expect(engine.statistics().subscriptions).toMatchObject({ subscriptions: 100, queries: 1 })
})

test('a Query that does not read the identity runs once for all callers', async () => {
  const watched = [watch('mine', 'a', ANA), watch('mine', 'a', BEN), watch('mine', 'a')]
  await settled(...watched)
  await send('a', 'one')
  await settled(...watched)
  expect(runs).toHaveLength(2)
  for (const each of watched) expect(values(each)).toEqual(['caller 0', 'caller 1'])
})

test('a Query that reads the identity runs for each caller', async () => {
  showsIdentity = true
  const [ana, ben] = [watch('mine', 'a', ANA), watch('mine', 'a', BEN)]
  await settled(ana, ben)
  await send('a', 'one')
  await settled(ana, ben)
  expect(values(ana)).toEqual(['ana 0', 'ana 1'])
  expect(values(ben)).toEqual(['ben 0', 'ben 1'])
})

test('a commit runs only the Queries whose read sets it overlaps', { tags: ['slow'] }, async () => {
  const rooms = Array.from({ length: 200 }, (_, i) => `room ${i}`)
  const watched = rooms.map((room) => watch('list', room))
  await settled(...watched)
  runs = []
  await send('room 7', 'hello')
  await settled(...watched)
  expect(runs).toEqual(['list room 7'])
  expect(values(watched[7]!)).toEqual([[], ['hello']])
  expect(values(watched[8]!)).toEqual([[]])
})

test('a commit during the first run, whose read set is not known yet, is shown', async () => {
  held = Promise.withResolvers()
  const watched = watch('list', 'a')
  await vi.waitFor(() => expect(runs).toHaveLength(1), BUSY)
  await send('a', 'one')
  held.resolve()
  await settled(watched)
  expect(values(watched)).toEqual([[], ['one']])
})

test.each([
  ['another list', 'b', []],
  ['its list', 'a', ['one']],
])(
  'a subscription after a commit to %s, during a run, gets no older state',
  { tags: ['slow'] },
  async (_, room, list) => {
    held = Promise.withResolvers()
    const first = watch('list', 'a')
    await vi.waitFor(() => expect(runs).toHaveLength(1), BUSY)
    const { sequence } = await send(room, 'one')
    const second = watch('list', 'a')
    held.resolve()
    await settled(first, second)
    expect(second.states).toEqual([{ value: list, sequence }])
    expect(runs).toHaveLength(room === 'a' ? 2 : 1)
  },
)

test('a later subscription receives the current state without a run', async () => {
  const first = watch('list', 'a')
  await settled(first)
  const { sequence } = await send('b', 'elsewhere')
  const second = watch('list', 'a')
  expect(second.states).toEqual([{ value: [], sequence }])
  expect(runs).toHaveLength(1)
})

test('a subscription that follows a commit shows it in its first state', async () => {
  const first = watch('list', 'a')
  await settled(first)
  held = Promise.withResolvers()
  await send('a', 'one')
  const second = watch('list', 'a')
  // The Query has a state, which this subscription did not receive.
  expect(second.subscription.currentAt).toBe(-1)
  held.resolve()
  await settled(first, second)
  expect(values(second)).toEqual([['one']])
})

test('a closed subscription receives nothing, and the last one stops the runs', async () => {
  const [first, second] = [watch('list', 'a'), watch('list', 'a')]
  await settled(first, second)
  first.subscription.close()
  first.subscription.close()
  await send('a', 'one')
  await settled(second)
  expect(values(first)).toEqual([[]])
  second.subscription.close()
  runs = []
  await send('a', 'two')
  expect(engine.statistics().subscriptions).toMatchObject({ subscriptions: 0, queries: 0 })
  expect(runs).toEqual([])
})

test('a change of the configuration runs the Queries that read it', async () => {
  configuration.change({ variables: { GREETING: 'hello' } })
  const [greeting, other] = [watch('greeting', null), watch('list', 'a')]
  await settled(greeting, other)
  runs = []
  configuration.change({ variables: { GREETING: 'welcome' } })
  await vi.waitFor(() => expect(values(greeting)).toEqual(['hello', 'welcome']), BUSY)
  expect(runs).toEqual(['greeting'])
})

test('a failure ends every subscription of the Query, and a new one runs it again', async () => {
  failure = new Fault('FUNCTION_FAILED')
  const [first, second] = [watch('list', 'a'), watch('list', 'a')]
  await settled(first, second)
  expect([first, second].map(({ faults }) => faults.map(({ code }) => code))).toEqual([
    ['FUNCTION_FAILED'],
    ['FUNCTION_FAILED'],
  ])
  failure = null
  const third = watch('list', 'a')
  await settled(third)
  expect(values(third)).toEqual([[]])
})

test('a passing failure after the first state is retried', async () => {
  const watched = watch('list', 'a')
  await settled(watched)
  failure = new Fault('BUSY')
  await send('a', 'one')
  await vi.waitFor(() => expect(runs).toHaveLength(3), BUSY)
  failure = null
  await vi.waitFor(() => expect(values(watched)).toEqual([[], ['one']]), BUSY)
  expect(watched.faults).toEqual([])
})

test('arguments that do not fit end the subscription', async () => {
  const watched = engine.watch(
    { ...request('list', 'a'), arguments: new Map([['other', 'a']]) },
    { state: () => undefined, failed: (fault) => codes.push(fault.code) },
  )
  const codes: string[] = []
  await vi.waitFor(() => expect(codes).toEqual(['ARGUMENTS_INVALID']), BUSY)
  expect(watched.currentAt).toBe(-1)
})

test(`every state is the result at its sequence (SVC_SEED=${SEED})`, async () => {
  let random = SEED | 0 || 1
  const below = (bound: number) => {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    return (random >>> 0) % bound
  }
  const rooms = ['a', 'b', 'c', 'd']
  /** The bodies of each room by sequence, from which every state is recomputed. */
  const history: { readonly sequence: number; readonly bodies: Map<string, string[]> }[] = []
  const documents: { readonly room: string; readonly id: string; body: string }[] = []
  const remember = (sequence: number) => {
    const bodies = new Map(rooms.map((room) => [room, bodiesOf(room)]))
    history.push({ sequence, bodies })
  }
  const bodiesOf = (room: string) =>
    documents
      .filter((each) => each.room === room)
      .map(({ body }) => body)
      .toSorted()
  remember(0)
  const watched: { readonly room: string; readonly of: Watched; isOpen: boolean }[] = []
  for (let step = 0; step < 600; step++) {
    const room = rooms[below(rooms.length)]!
    const action = below(10)
    if (action < 2) watched.push({ room, of: watch('list', room), isOpen: true })
    else if (action === 2 && watched.length > 0) {
      const closed = watched[below(watched.length)]!
      closed.of.subscription.close()
      closed.isOpen = false
    } else if (action < 7 || documents.length === 0) {
      const { value: id, sequence } = await send(room, `body ${step}`)
      documents.push({ room, id, body: `body ${step}` })
      remember(sequence)
    } else if (action < 9) {
      const edited = documents[below(documents.length)]!
      const { sequence } = await mutate('edit', [edited.id, `edit ${step}`])
      edited.body = `edit ${step}`
      remember(sequence)
    } else {
      const [removed] = documents.splice(below(documents.length), 1)
      remember((await mutate('remove', removed!.id)).sequence)
    }
  }
  const open = watched.filter(({ isOpen }) => isOpen)
  expect(open.length).toBeGreaterThan(20)
  await settled(...open.map(({ of }) => of))
  for (const { room, of, isOpen } of watched) {
    const sequences = of.states.map(({ sequence }) => sequence!)
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
    for (const { value, sequence } of of.states) {
      const at = history.findLast((entry) => entry.sequence <= sequence!)!
      expect(sorted(value)).toEqual(at.bodies.get(room))
    }
    if (isOpen) expect(sorted(of.states.at(-1)!.value)).toEqual(bodiesOf(room))
  }
})

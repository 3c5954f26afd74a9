/**
 * Mutations that read pending commits, and their outcome when those fail. Method: the engine over a
 * SQLite file whose commits wait until the test releases them or makes them fail.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { heldEngine, idOf, int, tenIterations } from '../../../testing/documents/held-engines.ts'
import { DeclaredFailure, type TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { realSystem } from '../../system/system.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { INVOCATIONS_MAX } from '../limits.ts'
import { PENDING_MERGED_MAX } from './pending-ranges.ts'

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function benchOf(
  handlers: Readonly<Record<string, TestHandler>> = {},
  commitMillisMax?: number,
) {
  const bench = await heldEngine(handlers, undefined, commitMillisMax)
  open.push(bench.close)
  return bench
}

/** Returns the error code of the call, or `done`. */
const outcomeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

/** Returns the outcome of the call, or `waits` while only the store can complete it. */
const stateOf = (call: Promise<unknown>): Promise<string> =>
  Promise.race([outcomeOf(call), tenIterations().then(() => 'waits')])

test('successive Mutations of one document share a durable transaction', async () => {
  const { held, pool, account, call, metrics } = await benchOf()
  const id = await account(0)
  const before = metrics.counters.commitBatches.value
  held.hold()
  const first = call('add', id)
  await held.arrived()
  const rest = Array.from({ length: 30 }, () => call('add', id))
  // All get a sequence: none waits for a durable transaction.
  for (let runs = 0; runs < pool.calls; await tenIterations()) runs = pool.calls
  held.release()
  const outcomes = await Promise.all([first, ...rest])
  expect(metrics.counters.commitBatches.value - before).toBe(2)
  const seen = outcomes
    .sort((a, b) => a.commitSequence! - b.commitSequence!)
    .map(({ resultText }) => decodeTagged(JSON.parse(resultText)) as Map<string, bigint>)
  expect(seen.map((each) => each.get('seen'))).toEqual(seen.map((_, i) => BigInt(i)))
  // Each read the sequence that its predecessor returned.
  const sequences = outcomes.map(({ commitSequence }) => BigInt(commitSequence!))
  expect(seen.map((each) => each.get('revision'))).toEqual([1n, ...sequences.slice(0, -1)])
})

describe.each([
  ['declared failure', 'spend', 'APP_NO_FUNDS'],
  ['failure of the code', 'crash', 'FUNCTION_FAILED'],
  ['success that wrote nothing', 'read', 'done'],
  ['success', 'add', 'done'],
])('a %s that depends on a pending commit', (_, name, code) => {
  async function dependent() {
    const bench = await benchOf()
    const id = await bench.account(5)
    bench.held.hold()
    const pending = bench.call('set', [id, 0])
    await bench.held.arrived()
    const dependent = bench.call(name, id)
    expect(await stateOf(dependent)).toBe('waits')
    return { bench, id, pending, dependent }
  }

  test('the outcome of a dependent call is returned once the commit is durable', {
    tags: ['slow'],
  }, async () => {
    const { bench, pending, dependent: call } = await dependent()
    bench.held.release()
    expect(await outcomeOf(pending.then(() => call))).toBe(code)
  })

  test.each(['UNAVAILABLE', 'RESULT_UNCERTAIN'] as const)(
    'the outcome of a dependent call is not returned if the commit fails with %s',
    { tags: ['slow'] },
    async (failure) => {
      const { bench, id, pending, dependent: call } = await dependent()
      bench.held.fail(failure)
      expect(await Promise.all([pending, call].map(outcomeOf))).toEqual([failure, 'UNAVAILABLE'])
      const { resultText } = await bench.call('read', id)
      expect(decodeTagged(JSON.parse(resultText))).toBe(5n)
    },
  )
})

describe('Mutations beyond the bound of one durable transaction', () => {
  const BATCH_MAX = 512
  const start = async () => {
    const bench = await heldEngine({})
    bench.held.hold()
    const first = bench.call('open', 1)
    await bench.held.arrived()
    const waiting = Array.from({ length: BATCH_MAX + 88 }, (_, i) => bench.call('open', i))
    await tenIterations()
    return { bench, calls: [first, ...waiting] }
  }

  test('go into the next one, in the order of their commits', { tags: ['slow'] }, async () => {
    const { bench, calls } = await start()
    bench.held.release()
    const outcomes = await Promise.all(calls)
    const sizes = bench.held.stored.map(({ transactions }) => transactions.length)
    expect(sizes).toEqual([1, BATCH_MAX, 88])
    const sequences = outcomes.map(({ commitSequence }) => commitSequence!)
    expect(sequences).toEqual(sequences.map((_, i) => sequences[0]! + i))
    await bench.close()
  })

  test('all fail with the transaction before them', async () => {
    const { bench, calls } = await start()
    bench.held.fail('UNAVAILABLE')
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)).toEqual(
      calls.map(() => 'UNAVAILABLE'),
    )
    expect(bench.held.stored).toEqual([])
    await bench.close()
  })
})

test('a failure that depends on durable documents only does not wait', async () => {
  const { held, account, call } = await benchOf()
  const [empty, other] = [await account(0), await account(5)]
  held.hold()
  const pending = call('set', [other, 0])
  await held.arrived()
  expect(await stateOf(call('spend', empty))).toBe('APP_NO_FUNDS')
  held.release()
  await pending
})

test('dependents of a failed commit fail, and their sequences are assigned again', async () => {
  const { held, account, call } = await benchOf()
  const [id, other] = [await account(0), await account(0)]
  held.hold()
  const chain = [call('add', id)]
  await held.arrived()
  for (let i = 0; i < 5; i++) {
    chain.push(call('add', id))
    await tenIterations()
  }
  const independent = call('add', other)
  await tenIterations()
  held.fail('UNAVAILABLE')
  for (const each of [...chain, independent]) expect(await outcomeOf(each)).toBe('UNAVAILABLE')
  const again = await call('add', id)
  expect(again.commitSequence).toBe(3)
  expect(decodeTagged(JSON.parse(again.resultText))).toEqual(
    new Map([
      ['seen', 0n],
      ['revision', 1n],
    ]),
  )
})

describe('an attempt whose snapshot was rolled back', () => {
  /**
   * It reads two accounts that are always equal: the first one before the rollback, the second one
   * after other commits got the same sequences.
   */
  async function rolledBackAttempt(name: string) {
    const gate = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const handler: TestHandler = async (db, { input: [a, b, pending] }) => {
      if (pending !== null) await db.get(idOf(pending))
      const first = (await db.get(idOf(a))).balance.$i
      started.resolve()
      await gate.promise
      const second = (await db.get(idOf(b))).balance.$i
      if (name === 'fails' && first !== second) throw new DeclaredFailure('UNEVEN')
      if (name === 'writes') await db.patch(idOf(a), { balance: int(100) })
      return [first, second]
    }
    const both: TestHandler = async (db, { input: [a, b] }) => {
      await db.patch(idOf(a), { balance: int(9) })
      await db.patch(idOf(b), { balance: int(9) })
    }
    const bench = await benchOf({ attempt: handler, both })
    const [a, b, c] = [await bench.account(1), await bench.account(1), await bench.account(1)]
    bench.held.hold()
    const failing = bench.call('set', [c, 0])
    await bench.held.arrived()
    return { bench, a, b, c, failing, gate, started }
  }

  test.each([
    ['that it read', 'writes', true],
    ['that it did not read', 'writes', false],
    ['that it read', 'reads', true],
    ['that it did not read', 'reads', false],
    ['that it read', 'fails', true],
    ['that it did not read', 'fails', false],
  ])(
    'an attempt after the rollback of a commit %s fails with UNAVAILABLE: it %s',
    { tags: ['slow'] },
    async (_, name, reads) => {
      const { bench, a, b, c, failing, gate, started } = await rolledBackAttempt(name)
      const attempt = bench.call('attempt', [a, b, reads ? c : null])
      const failed = outcomeOf(failing)
      await started.promise
      bench.held.fail('UNAVAILABLE')
      expect(await failed).toBe('UNAVAILABLE')
      // Another Mutation gets the same sequence.
      const { commitSequence } = await bench.call('both', [a, b])
      expect(commitSequence).toBe(4)
      gate.resolve()
      expect(await outcomeOf(attempt)).toBe('UNAVAILABLE')
      const { resultText } = await bench.call('read', a)
      expect(decodeTagged(JSON.parse(resultText))).toBe(9n)
    },
  )
})

describe('a range read in an interval that a pending commit wrote into', () => {
  test('sees what entered, left and stayed, and does not wait for durability', async () => {
    const found: string[] = []
    const handler: TestHandler = async (db, { input: [name, balance] }) => {
      const equal = [int(balance)]
      const { documents } = await db.range({ table: 'accounts', index: 'byBalance', equal })
      found.push(`${name}: ${documents.length}`)
      return null
    }
    const { held, account, call } = await benchOf({ count: handler })
    const [moved] = [await account(5), await account(7)]
    held.hold()
    const moving = call('set', [moved, 6])
    await held.arrived()
    const calls = [
      call('count', ['left', 5]),
      call('count', ['entered', 6]),
      call('count', ['unrelated', 7]),
    ]
    await tenIterations()
    expect(found).toEqual(['left: 0', 'entered: 1', 'unrelated: 1'])
    // What they read may still fail, so no caller has a reply.
    expect(await Promise.all(calls.map(stateOf))).toEqual(['waits', 'waits', 'waits'])
    held.release()
    await Promise.all([moving, ...calls])
  })

  test('lets a chain of Mutations share a durable transaction', async () => {
    const handler: TestHandler = async (db, { input: at }) => {
      const range = { table: 'accounts', index: 'byBalance', equal: [int(at)] }
      const { documents } = await db.range(range)
      const [{ _id: id }] = documents
      await db.patch(idOf(id), { balance: int(at + 1) })
      return null
    }
    const { held, account, call, metrics } = await benchOf({ raise: handler })
    const id = await account(0)
    const before = metrics.counters.commitBatches.value
    held.hold()
    const calls = [call('raise', 0)]
    await held.arrived()
    for (let at = 1; at < 10; at++) {
      calls.push(call('raise', at))
      await tenIterations()
    }
    held.release()
    await Promise.all(calls)
    expect(metrics.counters.commitBatches.value - before).toBe(2)
    expect((await call('read', id)).resultText).toContain('"10"')
  })

  test('waits for durability where more documents were written than are merged', async () => {
    const fill: TestHandler = async (db) => {
      for (let i = 0; i <= PENDING_MERGED_MAX; i++) await db.insert('accounts', { balance: int(3) })
    }
    const runs: number[] = []
    const list: TestHandler = async (db) => {
      const { documents } = await db.range({ table: 'accounts' })
      runs.push(documents.length)
      return null
    }
    const { held, call } = await benchOf({ fill, list })
    held.hold()
    const filling = call('fill')
    await held.arrived()
    const listing = call('list')
    await tenIterations()
    expect(runs).toEqual([])
    held.release()
    await Promise.all([filling, listing])
    expect(runs).toEqual([PENDING_MERGED_MAX + 1])
  })

  test('ends its Mutation where that commit fails', async () => {
    const handler: TestHandler = async (db) => (await db.range({ table: 'accounts' })).documents
    const { held, account, call } = await benchOf({ list: handler })
    await account(5)
    held.hold()
    const pending = call('open', 6)
    await held.arrived()
    const listing = call('list')
    expect(await stateOf(listing)).toBe('waits')
    held.fail('UNAVAILABLE')
    expect(await outcomeOf(pending)).toBe('UNAVAILABLE')
    expect(await outcomeOf(listing)).toBe('UNAVAILABLE')
  })
})

test('a Mutation waits for a locked document that it finds through an index', async () => {
  const bothRead = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  let runs = 0
  const handler: TestHandler = async (db, { input }) => {
    const range = { table: 'accounts', index: 'byBalance', equal: [input] }
    const [{ _id: id }] = (await db.range(range)).documents
    if (input.$i === '5') {
      runs += 1
      // The first two read the same version, so one of them conflicts and locks the document.
      if (runs === 2) bothRead.resolve()
      await (runs <= 2 ? bothRead.promise : locked.promise)
    }
    await db.patch(idOf(id), { balance: input })
    return null
  }
  const { account, call } = await benchOf({ touch: handler })
  for (const balance of [5, 6, 7]) await account(balance)
  // Enough calls to learn that the Function finds the balance of its argument.
  for (let i = 0; i < 8; i++) await call('touch', i % 2 === 0 ? 6n : 7n)
  const both = [call('touch', 5n), call('touch', 5n)]
  for (let waited = 0; runs < 3 && waited < 1_000; waited++) await tenIterations()
  expect(runs).toBe(3)
  const third = call('touch', 5n)
  await call('touch', 6n)
  await tenIterations()
  expect(runs).toBe(3)
  locked.resolve()
  const outcomes = await Promise.all([...both, third])
  expect(outcomes.map(({ attempts }) => attempts).sort()).toEqual([1, 1, 2])
})

test('a Mutation releases its lock when its commit has a sequence', async () => {
  const bothRead = Promise.withResolvers<void>()
  let runs = 0
  const handler: TestHandler = async (db, { input }) => {
    const { balance } = await db.get(idOf(input))
    runs += 1
    // The first two read the same version, so one of them conflicts and locks the document.
    if (runs === 2) bothRead.resolve()
    await bothRead.promise
    await db.patch(idOf(input), { balance: int(Number(balance.$i) + 1) })
    return null
  }
  const { held, account, call } = await benchOf({ collide: handler })
  const id = await account(0)
  held.hold()
  const both = [call('collide', id), call('collide', id)]
  await held.arrived()
  await tenIterations()
  expect(runs).toBe(3)
  // Its arguments name the document, so it would wait for a lock on it.
  const third = call('collide', id)
  await tenIterations()
  expect(runs).toBe(4)
  held.release()
  const outcomes = await Promise.all([...both, third])
  expect(outcomes.map(({ attempts }) => attempts).sort()).toEqual([1, 1, 2])
})

describe('a stalled commit', () => {
  async function stalled() {
    const bench = await benchOf({}, 500)
    const { held, engine, call, account } = bench
    const id = await account(5)
    held.hold()
    const operationId = realSystem().ids.make('opn')
    const first = outcomeOf(call('add', id, operationId))
    await held.arrived()
    const dependents = [outcomeOf(call('read', id)), outcomeOf(call('crash', id))]
    const status = async () => (await engine.health()).find(({ name }) => name === 'documents')
    return { ...bench, id, operationId, first, dependents, status }
  }

  test('fails the calls that wait for it, and new commits', { tags: ['slow'] }, async () => {
    const { call, pool, id, operationId, first, dependents, status } = await stalled()
    expect(await Promise.all([first, ...dependents])).toEqual(Array(3).fill('DEADLINE_EXCEEDED'))
    expect(await outcomeOf(call('open', 1))).toBe('UNAVAILABLE')
    expect(await outcomeOf(call('crash', id))).toBe('UNAVAILABLE')
    // A repeat does not run while the outcome of the original is unknown.
    const runs = pool.calls
    expect(await stateOf(call('add', id, operationId))).toBe('DEADLINE_EXCEEDED')
    expect(pool.calls).toBe(runs)
    expect(await status()).toMatchObject({ status: 'degraded' })
  })

  test('stays in flight until its outcome is known', { tags: ['slow'] }, async () => {
    const { held, engine, first } = await stalled()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    expect(await stateOf(engine.whenIdle())).toBe('waits')
    held.release()
    await engine.whenIdle()
    expect(engine.statistics().durableSequence).toBe(2)
  })

  test('counts towards the bound of Mutations, not of Queries', { tags: ['slow'] }, async () => {
    const { call, query, held, engine, id, operationId, first, dependents } = await stalled()
    const left = INVOCATIONS_MAX - 1 - dependents.length
    const others = Array.from({ length: left }, () => outcomeOf(call('open', 1)))
    expect(await stateOf(query('read', id))).toBe('BUSY')
    await Promise.all([first, ...dependents, ...others])
    expect(await stateOf(query('read', id))).toBe('done')
    expect(await stateOf(call('open', 1))).toBe('BUSY')
    expect(await stateOf(call('add', id, operationId))).toBe('DEADLINE_EXCEEDED')
    held.release()
    await engine.whenIdle()
    expect(await outcomeOf(call('open', 1))).toBe('done')
  })

  test('a stalled commit that becomes durable is replayed to a repeat', {
    tags: ['slow'],
  }, async () => {
    const { call, held, id, operationId, first, status } = await stalled()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    held.release()
    await expect.poll(async () => (await status())?.status).toBe('healthy')
    expect(await call('add', id, operationId)).toMatchObject({ replayed: true, attempts: 1 })
    const { resultText } = await call('read', id)
    expect(decodeTagged(JSON.parse(resultText))).toBe(6n)
  })

  test('a stalled commit that fails lets a repeat run', { tags: ['slow'] }, async () => {
    const { call, held, id, operationId, first, status } = await stalled()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    held.fail('UNAVAILABLE')
    await tenIterations()
    expect(await call('add', id, operationId)).toMatchObject({ replayed: false })
    expect(await status()).toMatchObject({ status: 'healthy' })
  })
})

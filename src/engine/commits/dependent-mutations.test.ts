/**
 * Mutations that read commits which are not durable yet, and what becomes of them when those fail.
 * Method: the engine over a real file, whose commits wait until the test lets them go or fail.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { heldEngine, idOf, int, turns } from '../../../build/testing/documents/held-engines.ts'
import { DeclaredFailure, type TestHandler } from '../../../build/testing/engine/in-process-pool.ts'
import { realSystem } from '../../system/system.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { INVOCATIONS_MAX } from '../limits.ts'

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

/** The code that it ends with, or `done`. */
const endOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

/** The same; `waits` where nothing but the store can end it. */
const stateOf = (call: Promise<unknown>): Promise<string> =>
  Promise.race([endOf(call), turns().then(() => 'waits')])

test('Mutations that follow one another on a document share a durable transaction', async () => {
  const { held, pool, account, call, metrics } = await benchOf()
  const id = await account(0)
  const before = metrics.counters.commitBatches.value
  held.hold()
  const first = call('add', id)
  await held.arrived()
  const rest = Array.from({ length: 30 }, () => call('add', id))
  // All come to have their place: nobody waits for a durable transaction.
  for (let runs = 0; runs < pool.calls; await turns()) runs = pool.calls
  held.release()
  const outcomes = await Promise.all([first, ...rest])
  expect(metrics.counters.commitBatches.value - before).toBe(2)
  const seen = outcomes
    .sort((a, b) => a.commitSequence! - b.commitSequence!)
    .map(({ resultText }) => decodeTagged(JSON.parse(resultText)) as Map<string, bigint>)
  expect(seen.map((each) => each.get('seen'))).toEqual(seen.map((_, i) => BigInt(i)))
  // Each saw the sequence that its predecessor was answered with.
  const sequences = outcomes.map(({ commitSequence }) => BigInt(commitSequence!))
  expect(seen.map((each) => each.get('revision'))).toEqual([1n, ...sequences.slice(0, -1)])
})

describe.each([
  ['declared failure', 'spend', 'APP_NO_FUNDS'],
  ['failure of the code', 'crash', 'FUNCTION_FAILED'],
  ['success that wrote nothing', 'read', 'done'],
  ['success', 'add', 'done'],
])('a %s that follows from a commit', (_, name, code) => {
  async function dependent() {
    const bench = await benchOf()
    const id = await bench.account(5)
    bench.held.hold()
    const spends = bench.call('set', [id, 0])
    await bench.held.arrived()
    const follows = bench.call(name, id)
    expect(await stateOf(follows)).toBe('waits')
    return { bench, id, spends, follows }
  }

  test('is answered when that is durable', async () => {
    const { bench, spends, follows } = await dependent()
    bench.held.release()
    expect(await endOf(spends.then(() => follows))).toBe(code)
  })

  test.each(['UNAVAILABLE', 'RESULT_UNCERTAIN'] as const)(
    'is not answered where that is %s',
    async (failure) => {
      const { bench, id, spends, follows } = await dependent()
      bench.held.fail(failure)
      expect(await Promise.all([spends, follows].map(endOf))).toEqual([failure, 'UNAVAILABLE'])
      const { resultText } = await bench.call('read', id)
      expect(decodeTagged(JSON.parse(resultText))).toBe(5n)
    },
  )
})

describe('Mutations beyond what one durable transaction holds', () => {
  const BATCH_MAX = 512
  const begin = async () => {
    const bench = await heldEngine({})
    bench.held.hold()
    const first = bench.call('open', 1)
    await bench.held.arrived()
    const waiting = Array.from({ length: BATCH_MAX + 88 }, (_, i) => bench.call('open', i))
    await turns()
    return { bench, calls: [first, ...waiting] }
  }

  test('go into the next one, in their order', async () => {
    const { bench, calls } = await begin()
    bench.held.release()
    const outcomes = await Promise.all(calls)
    const sizes = bench.held.stored.map(({ transactions }) => transactions.length)
    expect(sizes).toEqual([1, BATCH_MAX, 88])
    const sequences = outcomes.map(({ commitSequence }) => commitSequence!)
    expect(sequences).toEqual(sequences.map((_, i) => sequences[0]! + i))
    await bench.close()
  })

  test('are all lost with the one before them', async () => {
    const { bench, calls } = await begin()
    bench.held.fail('UNAVAILABLE')
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)).toEqual(
      calls.map(() => 'UNAVAILABLE'),
    )
    expect(bench.held.stored).toEqual([])
    await bench.close()
  })
})

test('a failure that follows from what is durable does not wait', async () => {
  const { held, account, call } = await benchOf()
  const [empty, other] = [await account(0), await account(5)]
  held.hold()
  const pending = call('set', [other, 0])
  await held.arrived()
  expect(await stateOf(call('spend', empty))).toBe('APP_NO_FUNDS')
  held.release()
  await pending
})

test('dependents of a failed commit are lost, and their sequences are given again', async () => {
  const { held, account, call } = await benchOf()
  const [id, other] = [await account(0), await account(0)]
  held.hold()
  const chain = [call('add', id)]
  await held.arrived()
  for (let i = 0; i < 5; i++) {
    chain.push(call('add', id))
    await turns()
  }
  const apart = call('add', other)
  await turns()
  held.fail('UNAVAILABLE')
  for (const each of [...chain, apart]) expect(await endOf(each)).toBe('UNAVAILABLE')
  const again = await call('add', id)
  expect(again.commitSequence).toBe(3)
  expect(decodeTagged(JSON.parse(again.resultText))).toEqual(
    new Map([
      ['seen', 0n],
      ['revision', 1n],
    ]),
  )
})

describe('an attempt whose snapshot is lost', () => {
  /** It saw two accounts that are always equal: one before, one after others used its numbers. */
  async function overtaken(name: string) {
    const gate = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    const handler: TestHandler = async (db, { input: [a, b, seen] }) => {
      if (seen !== null) await db.get(idOf(seen))
      const first = (await db.get(idOf(a))).balance.$i
      began.resolve()
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
    const bench = await benchOf({ overtaken: handler, both })
    const [a, b, c] = [await bench.account(1), await bench.account(1), await bench.account(1)]
    bench.held.hold()
    const losing = bench.call('set', [c, 0])
    await bench.held.arrived()
    return { bench, a, b, c, losing, gate, began }
  }

  test.each([
    ['that it read', 'writes', true],
    ['that it did not read', 'writes', false],
    ['that it read', 'reads', true],
    ['that it did not read', 'reads', false],
    ['that it read', 'fails', true],
    ['that it did not read', 'fails', false],
  ])('by a commit %s is not answered: it %s', async (_, name, reads) => {
    const { bench, a, b, c, losing, gate, began } = await overtaken(name)
    const doomed = bench.call('overtaken', [a, b, reads ? c : null])
    const state = endOf(losing)
    await began.promise
    bench.held.fail('UNAVAILABLE')
    expect(await state).toBe('UNAVAILABLE')
    // The same sequence again, by others.
    const { commitSequence } = await bench.call('both', [a, b])
    expect(commitSequence).toBe(4)
    gate.resolve()
    expect(await endOf(doomed)).toBe('UNAVAILABLE')
    const { resultText } = await bench.call('read', a)
    expect(decodeTagged(JSON.parse(resultText))).toBe(9n)
  })
})

test('a range waits for a commit that touches it, and another one does not', async () => {
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
    call('count', ['apart', 7]),
  ]
  await turns()
  expect(found).toEqual(['apart: 1'])
  held.release()
  await Promise.all([moving, ...calls])
  expect(found.sort()).toEqual(['apart: 1', 'entered: 1', 'left: 0'])
})

test('a range that waits for a commit which is lost ends its Mutation', async () => {
  const handler: TestHandler = async (db) => (await db.range({ table: 'accounts' })).documents
  const { held, account, call } = await benchOf({ list: handler })
  await account(5)
  held.hold()
  const pending = call('open', 6)
  await held.arrived()
  const listing = call('list')
  expect(await stateOf(listing)).toBe('waits')
  held.fail('UNAVAILABLE')
  expect(await endOf(pending)).toBe('UNAVAILABLE')
  expect(await endOf(listing)).toBe('UNAVAILABLE')
})

test('whoever stood in line leaves it when its place is assigned', async () => {
  const meet = Promise.withResolvers<void>()
  let runs = 0
  const handler: TestHandler = async (db, { input }) => {
    const { balance } = await db.get(idOf(input))
    runs += 1
    // The first two read the same version, so one of them loses and stands in line.
    if (runs === 2) meet.resolve()
    await meet.promise
    await db.patch(idOf(input), { balance: int(Number(balance.$i) + 1) })
    return null
  }
  const { held, account, call } = await benchOf({ collide: handler })
  const id = await account(0)
  held.hold()
  const both = [call('collide', id), call('collide', id)]
  await held.arrived()
  await turns()
  expect(runs).toBe(3)
  // It names the document, so it would stand behind whoever is in line for it.
  const third = call('collide', id)
  await turns()
  expect(runs).toBe(4)
  held.release()
  const outcomes = await Promise.all([...both, third])
  expect(outcomes.map(({ attempts }) => attempts).sort()).toEqual([1, 1, 2])
})

describe('a store that takes too long over a commit', () => {
  async function late() {
    const bench = await benchOf({}, 500)
    const { held, engine, call, account } = bench
    const id = await account(5)
    held.hold()
    const operationId = realSystem().ids.make('opn')
    const first = endOf(call('add', id, operationId))
    await held.arrived()
    const behind = [endOf(call('read', id)), endOf(call('crash', id))]
    const status = async () => (await engine.health()).find(({ name }) => name === 'documents')
    return { ...bench, id, operationId, first, behind, status }
  }

  test('answers those that wait, and takes no more', async () => {
    const { call, pool, id, operationId, first, behind, status } = await late()
    expect(await Promise.all([first, ...behind])).toEqual(Array(3).fill('DEADLINE_EXCEEDED'))
    expect(await endOf(call('open', 1))).toBe('UNAVAILABLE')
    expect(await endOf(call('crash', id))).toBe('DEADLINE_EXCEEDED')
    // It runs no second time beside the first.
    const runs = pool.calls
    expect(await stateOf(call('add', id, operationId))).toBe('DEADLINE_EXCEEDED')
    expect(pool.calls).toBe(runs)
    expect(await status()).toMatchObject({ status: 'degraded' })
  })

  test('keeps it in flight until it is known', async () => {
    const { held, engine, first } = await late()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    expect(await stateOf(engine.idle())).toBe('waits')
    held.release()
    await engine.idle()
    expect(engine.statistics().durableSequence).toBe(2)
  })

  test('keeps no place from Queries: Mutations that are not over are bounded apart', async () => {
    const { call, query, held, engine, id, operationId, first, behind } = await late()
    const left = INVOCATIONS_MAX - 1 - behind.length
    const others = Array.from({ length: left }, () => endOf(call('open', 1)))
    expect(await stateOf(query('read', id))).toBe('BUSY')
    await Promise.all([first, ...behind, ...others])
    expect(await stateOf(query('read', id))).toBe('done')
    expect(await stateOf(call('open', 1))).toBe('BUSY')
    expect(await stateOf(call('add', id, operationId))).toBe('DEADLINE_EXCEEDED')
    held.release()
    await engine.idle()
    expect(await endOf(call('open', 1))).toBe('done')
  })

  test('has it all the same in the end: the repeat is answered from its record', async () => {
    const { call, held, id, operationId, first, status } = await late()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    held.release()
    await expect.poll(async () => (await status())?.status).toBe('healthy')
    expect(await call('add', id, operationId)).toMatchObject({ replayed: true, attempts: 1 })
    const { resultText } = await call('read', id)
    expect(decodeTagged(JSON.parse(resultText))).toBe(6n)
  })

  test('or has none of it: the repeat runs', async () => {
    const { call, held, id, operationId, first, status } = await late()
    expect(await first).toBe('DEADLINE_EXCEEDED')
    held.fail('UNAVAILABLE')
    await turns()
    expect(await call('add', id, operationId)).toMatchObject({ replayed: false })
    expect(await status()).toMatchObject({ status: 'healthy' })
  })
})

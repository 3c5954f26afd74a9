/**
 * Goal: a runner that has been taken over harms no call but its own. Method: a program that speaks
 * the protocol and then breaks it, beside a call that waits in the same process.
 */
import { afterAll, describe, expect, test } from 'vitest'
import {
  LIES,
  type LIES_AHEAD,
  type LIES_IN_STEP,
} from '../../../build/testing/hostile/malicious-runner.ts'
import { oneDocument, poolBench } from '../../../build/testing/runners.ts'
import { assert } from '../../errors/assert.ts'
import { encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { returnedValue } from '../invocations/returned-documents.ts'
import type { RunnerHost, RunnerOutcome } from './runner-pool.ts'

const liar = new URL('../../../build/testing/hostile/malicious-runner.ts', import.meta.url).pathname
const bench = poolBench({
  command: [process.execPath, liar],
  limits: { backlogBytes: 1e6, deferredCharacters: 1e5 },
})
const { pool, release, call } = bench
const code = release('')
afterAll(() => pool.close())

const large: RunnerHost = { operation: () => JSON.stringify('x'.repeat(1e6)) }

const silent: RunnerHost = { operation: () => new Promise(() => {}) }

/** Runs a call again for as long as it is lost, as the engine does. */
async function settled(name: string, host = large, options = {}): Promise<RunnerOutcome> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const outcome = await pool.invoke(code, call(name, options), host)
    if (outcome.kind !== 'lost') return outcome
  }
  return { kind: 'lost' }
}

/** Beside calls that are answered, before and after. */
async function amongHonest(guilty: () => Promise<RunnerOutcome>): Promise<RunnerOutcome> {
  const honest = Array.from({ length: 3 }, () => settled('honest'))
  const outcome = await guilty()
  for (const answered of await Promise.all(honest)) {
    expect(answered).toMatchObject({ kind: 'returned', result: 'honest' })
  }
  expect(await settled('honest')).toMatchObject({ kind: 'returned' })
  return outcome
}

test.each(Object.keys(LIES))('%s is found out, and the others are answered', async (lie) => {
  expect(await amongHonest(() => settled(lie))).toMatchObject({ kind: 'broken' })
})

const IN_STEP: Readonly<Record<keyof typeof LIES_IN_STEP, string>> = {
  tellsInStep: 'it works for a call that it has ended, or ahead of one in step',
  tellsAtTheEndInStep: 'it works for a call that it has ended, or ahead of one in step',
  voidsInStep: 'it voids a call in step',
}
const AHEAD: Readonly<Record<keyof typeof LIES_AHEAD, string>> = {
  tellsRun: 'operations that need no reply',
  tellsFetch: 'operations that need no reply',
  tellsUsage: 'operations that need no reply',
  tellsRange: 'operations that need no reply',
  tellsNothing: 'operations',
  tellsNothingAtTheEnd: 'operations',
  tellsRunAtTheEnd: 'operations that need no reply',
  tellsAtItsSecondEnd: 'it works for a call that it has ended, or ahead of one in step',
  tellsNoList: 'an operation',
  tellsOfAnother: 'it works for a call that is not in flight',
  endsTwice: 'it ends a call twice',
  endsVoidBehind: 'it ends a call twice',
  tellsBehindItsEnd: 'it works for a call that it has ended',
  asksBehindItsEnd: 'it works for a call that it has ended',
}

test.each(Object.entries(IN_STEP))('%s is found out as such in step: %s', async (lie, reason) => {
  const outcome = await amongHonest(() => settled(lie))
  expect(outcome).toMatchObject({ kind: 'broken', detail: expect.stringContaining(reason) })
})

describe('of a call that runs ahead', () => {
  const ahead = { prefetched: [] }

  test.each(Object.entries(AHEAD))('%s is found out as such: %s', async (lie, reason) => {
    const outcome = await amongHonest(() => settled(lie, silent, ahead))
    expect(outcome).toMatchObject({ kind: 'broken', detail: expect.stringContaining(reason) })
  })

  test.each([
    ['at once', oneDocument],
    ['never', silent],
  ])('no more is worked than it may ask, where that is answered %s', async (_, host) => {
    let worked = 0
    const counting: RunnerHost = {
      operation(...asked) {
        worked += 1
        return host.operation(...asked)
      },
    }
    const outcome = await amongHonest(() => settled('tellsMuch', counting, ahead))
    expect(outcome).toEqual({ kind: 'limit', limit: 'operations' })
    expect(worked).toBe(100_000)
  })

  test('what is told behind the end is not worked, and ends the process', async () => {
    const fresh = release('')
    let worked = 0
    const counting: RunnerHost = { operation: () => String(++worked) }
    const outcome = await pool.invoke(fresh, call('tellsLate', ahead), counting)
    expect(outcome).toMatchObject({ kind: 'returned', result: 'once' })
    await expect.poll(() => bench.log.text()).toContain('it works for a call that is not in flight')
    expect(worked).toBe(0)
  })
})

test('an end that is told twice counts once, and ends the process', async () => {
  const fresh = release('')
  const outcome = await pool.invoke(fresh, call('endTwice'), oneDocument)
  expect(outcome).toMatchObject({ kind: 'returned', result: 'once' })
  expect(bench.log.text()).toContain('it ends a call that is not in flight')
})

describe('a result that names documents', () => {
  const documentOf = (number: number) => ({
    ...{ id: `x_${number}`, createdAtMicros: 1n, sequence: number, text: `{"n":${number}}` },
  })

  /** Two calls at once in one process, each of which reads a document of its own. */
  async function told(result: unknown) {
    const argumentsText = JSON.stringify({ result })
    const calls = [1, 2].map((number) => {
      const found = { documents: [documentOf(number)], page: null }
      return pool.invoke(code, call('names', { argumentsText }), { operation: () => found })
    })
    return (await Promise.all(calls)).map((outcome) => {
      assert(outcome.kind === 'returned', outcome.kind)
      return () => encodeStored(returnedValue(outcome.result, outcome.documents))
    })
  }

  test('means those of its own call', async () => {
    const [first, second] = await told([{ $r: 0 }])
    expect(first!()).toContain('"_id":"x_1"')
    expect(second!()).toContain('"_id":"x_2"')
  })

  test.each([1, 2, -1, 0.5, 4e9, '0', 'length', '__proto__', null, [0]])(
    'is refused where it names %j',
    async (place) => {
      for (const read of await told([{ $r: 0 }, { $r: place }]))
        expect(read).toThrow(ValidationError)
    },
  )
})

test('one that never answers is waited for until the deadline, and no longer', async () => {
  await pool.warm(code)
  const started = performance.now()
  const outcome = await pool.invoke(code, call('waits', { millis: 200 }), oneDocument)
  expect(outcome).toEqual({ kind: 'deadline' })
  expect(performance.now() - started).toBeLessThan(5_000)
})

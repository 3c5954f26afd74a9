/**
 * Goal: a runner that has been taken over harms no call but its own. Method: a program that speaks
 * the protocol and then breaks it, beside a call that waits in the same process.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { oneDocument, poolBench } from '../../../build/testing/runners.ts'
import { assert } from '../../errors/assert.ts'
import { LIES } from '../../runner/hostile/liars.ts'
import { Malformed } from '../../value/malformed.ts'
import { encodeStored } from '../../value/stored.ts'
import { returnedValue } from '../named-documents.ts'
import type { RunnerHost, RunnerOutcome } from '../runner-pool.ts'

const liar = new URL('../../runner/hostile/liars.ts', import.meta.url).pathname
const bench = poolBench({
  command: [process.execPath, liar],
  limits: { backlogBytes: 1e6, deferredCharacters: 1e5 },
})
const { pool, release, call } = bench
const code = release('')
afterAll(() => pool.close())

const large: RunnerHost = { operation: () => JSON.stringify('x'.repeat(1e6)) }

/** Runs a call again for as long as it is lost, as the engine does. */
async function settled(name: string): Promise<RunnerOutcome> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const outcome = await pool.invoke(code, call(name), large)
    if (outcome.kind !== 'lost') return outcome
  }
  return { kind: 'lost' }
}

test.each(Object.keys(LIES))('%s is found out, and the others are answered', async (lie) => {
  const honest = Array.from({ length: 3 }, () => settled('honest'))
  const guilty = await settled(lie)
  expect(guilty.kind).toBe('broken')
  for (const outcome of await Promise.all(honest)) {
    expect(outcome).toMatchObject({ kind: 'returned', result: 'honest' })
  }
  expect(await settled('honest')).toMatchObject({ kind: 'returned' })
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
      for (const read of await told([{ $r: 0 }, { $r: place }])) expect(read).toThrow(Malformed)
    },
  )
})

test('one that never answers is waited for until the deadline, and no longer', async () => {
  await pool.warm(code)
  const started = performance.now()
  const outcome = await pool.invoke(code, call('waits', { millis: 200 }), oneDocument)
  expect(outcome).toEqual({ kind: 'deadline' })
  expect(performance.now() - started).toBeLessThan(1_000)
})

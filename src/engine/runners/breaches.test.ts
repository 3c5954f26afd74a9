/**
 * Goal: a compromised runner harms no other call than the malicious one. Method: a program that
 * speaks the protocol and then violates it, beside a call that waits in the same process.
 */
import { afterAll, describe, expect, test } from 'vitest'
import {
  BREACHES,
  type SPECULATIVE_BREACHES,
  type SYNCHRONOUS_BREACHES,
} from '../../../testing/hostile/malicious-runner.ts'
import { oneDocument, poolBench } from '../../../testing/runners.ts'
import { assert } from '../../errors/assert.ts'
import { encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { RunnerHost, RunnerOutcome } from '../calls/outcomes.ts'
import { returnedValue } from '../calls/returned-documents.ts'

const maliciousRunner = new URL('../../../testing/hostile/malicious-runner.ts', import.meta.url)
  .pathname
const bench = poolBench({
  command: [process.execPath, maliciousRunner],
  limits: { backlogBytes: 1e6, deferredCharacters: 1e5 },
})
const { pool, release, call } = bench
const code = release('')
afterAll(() => pool.close())

const large: RunnerHost = { operation: () => JSON.stringify('x'.repeat(1e6)) }

const silent: RunnerHost = { operation: () => new Promise(() => {}) }

/** Repeats a call while it is lost, as the engine does. */
async function outcomeOf(name: string, host = large, options = {}): Promise<RunnerOutcome> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const outcome = await pool.invoke(code, call(name, options), host)
    if (outcome.kind !== 'lost') return outcome
  }
  return { kind: 'lost' }
}

/** Runs a malicious call beside honest ones, which must succeed, and another one after it. */
async function amongHonest(malicious: () => Promise<RunnerOutcome>): Promise<RunnerOutcome> {
  const honest = Array.from({ length: 3 }, () => outcomeOf('honest'))
  const outcome = await malicious()
  for (const returned of await Promise.all(honest)) {
    expect(returned).toMatchObject({ kind: 'returned', result: 'honest' })
  }
  expect(await outcomeOf('honest')).toMatchObject({ kind: 'returned' })
  return outcome
}

test.each(Object.keys(BREACHES))('%s is detected, and honest calls succeed', async (lie) => {
  expect(await amongHonest(() => outcomeOf(lie))).toMatchObject({ kind: 'broken' })
})

const SYNCHRONOUS: Readonly<Record<keyof typeof SYNCHRONOUS_BREACHES, string>> = {
  pipelinesSynchronously: 'it sent an operation after the outcome, or pipelined one synchronously',
  pipelinesAtTheEndSynchronously:
    'it sent an operation after the outcome, or pipelined one synchronously',
  misspeculatesSynchronously: 'it reported a call as misspeculated that cannot be',
  looksWithoutPlaceholders: 'it reported a call as misspeculated that cannot be',
  keepsWithoutPlaceholders: 'it reported a call as misspeculated that cannot be',
  misspeculatesForNothing: 'a cause',
}
const SPECULATIVE: Readonly<Record<keyof typeof SPECULATIVE_BREACHES, string>> = {
  pipelinesRun: 'operations that need no reply',
  pipelinesFetch: 'operations that need no reply',
  pipelinesUsage: 'operations that need no reply',
  pipelinesNothing: 'operations',
  pipelinesNothingAtTheEnd: 'operations',
  pipelinesRunAtTheEnd: 'operations that need no reply',
  pipelinesAtItsSecondEnd: 'it sent an operation after the outcome, or pipelined one synchronously',
  pipelinesNoList: 'an operation',
  pipelinesForAnother: 'it sent an operation of an unknown call',
  endsTwice: 'it ended a call twice',
  misspeculatesAfterItsEnd: 'it ended a call twice',
  pipelinesAfterItsEnd: 'it sent an operation after the outcome',
  sendsAfterItsEnd: 'it sent an operation after the outcome',
}

test.each(Object.entries(SYNCHRONOUS))(
  '%s is detected in a synchronous call: %s',
  async (lie, reason) => {
    const outcome = await amongHonest(() => outcomeOf(lie))
    expect(outcome).toMatchObject({ kind: 'broken', detail: expect.stringContaining(reason) })
  },
)

describe('in a speculative call', () => {
  const speculative = { prefetched: [] }

  test.each(Object.entries(SPECULATIVE))('%s is detected: %s', async (lie, reason) => {
    const outcome = await amongHonest(() => outcomeOf(lie, silent, speculative))
    expect(outcome).toMatchObject({ kind: 'broken', detail: expect.stringContaining(reason) })
  })

  test.each([
    ['at once', oneDocument],
    ['never', silent],
  ])('no more operations than the bound are performed, with replies %s', async (_, host) => {
    let performed = 0
    const counting: RunnerHost = {
      operation(...operation) {
        performed += 1
        return host.operation(...operation)
      },
    }
    const outcome = await amongHonest(() => outcomeOf('pipelinesMuch', counting, speculative))
    expect(outcome).toEqual({ kind: 'limit', limit: 'operations' })
    expect(performed).toBe(100_000)
  })

  test('an operation after the end is not performed, and ends the process', async () => {
    const fresh = release('')
    let performed = 0
    const counting: RunnerHost = { operation: () => String(++performed) }
    const outcome = await pool.invoke(fresh, call('pipelinesLate', speculative), counting)
    expect(outcome).toMatchObject({ kind: 'returned', result: 'once' })
    await expect.poll(() => bench.log.text()).toContain('it sent an operation of an unknown call')
    expect(performed).toBe(0)
  })
})

test('an end that is sent twice counts once, and ends the process', async () => {
  const fresh = release('')
  const outcome = await pool.invoke(fresh, call('endTwice'), oneDocument)
  expect(outcome).toMatchObject({ kind: 'returned', result: 'once' })
  await expect.poll(() => bench.log.text()).toContain('it ended an unknown call')
})

describe('a result with document references', () => {
  const documentOf = (number: number) => ({
    id: `x_${number}`,
    createdAtMicros: 1n,
    sequence: number,
    text: `{"n":${number}}`,
  })

  /** Runs two concurrent calls in one process, each of which reads a document of its own. */
  async function resultsOf(result: unknown) {
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

  test('refers to documents of its own call', async () => {
    const [first, second] = await resultsOf([{ $r: 0 }])
    expect(first!()).toContain('"_id":"x_1"')
    expect(second!()).toContain('"_id":"x_2"')
  })

  test.each([1, 2, -1, 0.5, 4e9, '0', 'length', '__proto__', null, [0]])(
    'a result with document references is rejected with the index %j',
    async (index) => {
      for (const read of await resultsOf([{ $r: 0 }, { $r: index }]))
        expect(read).toThrow(ValidationError)
    },
  )
})

test('a call that never ends is given up at its deadline', async () => {
  await pool.warm(code)
  const started = performance.now()
  const outcome = await pool.invoke(code, call('waits', { millis: 200 }), oneDocument)
  expect(outcome).toEqual({ kind: 'deadline' })
  expect(performance.now() - started).toBeLessThan(60_000)
})

/** The log records of the lines that a Function writes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { TestSystem } from '../../system/system.ts'
import { createLog, type LogExtension } from '../../telemetry/log.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { logOutcome } from './function-logs.ts'
import type { Invocation } from './invocation.ts'

const FUNCTIONS = `
  says: query((ctx) => {
    ctx.log.info('with fields', { userId: 'u_1', amount: 4n, level: 'error', requestId: 'forged' })
    ctx.log.error('with an error', { error: new RangeError('too far'), at: { deep: [1] } })
    ctx.log.warn('alone')
    ctx.log.debug('fine', { step: 1 })
    console.log('order %s', 'o_1', { paid: true })
    console.error('failed:', new TypeError('no'))
    console.debug('finer')
    ctx.log.info('key', { value: 'rk_at_v1_secret', long: 'x'.repeat(9_000) })
  }),
`
let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS)
})
afterAll(() => bench.close())

test('the fields of a line are logged as data and replace no field of the record', async () => {
  await bench.call('says')
  const records = bench.log.records().filter(({ event }) => event === 'function.log')
  for (const record of records) expect(record.requestId).toBe('req_test')
  const logged = records.map(({ level, lineLevel, message, data }) => [
    level,
    lineLevel,
    message,
    data,
  ])
  expect(logged.slice(0, -1)).toEqual([
    [
      'info',
      undefined,
      'with fields',
      { userId: 'u_1', amount: '4n', level: 'error', requestId: 'forged' },
    ],
    ['error', undefined, 'with an error', { error: 'RangeError: too far', at: { deep: [1] } }],
    ['warn', undefined, 'alone', undefined],
    ['info', 'debug', 'fine', { step: 1 }],
    ['info', undefined, 'order %s', ['o_1', { paid: true }]],
    ['error', undefined, 'failed:', 'TypeError: no'],
    ['info', 'debug', 'finer', undefined],
  ])
  // Data is truncated at the bound, and credentials in it are redacted.
  expect(logged.at(-1)![3]).toMatch(/^\{"value":"rk_at_v1_\[redacted\]","long":"x{1000,}$/)
})

test('lines that the log does not admit are nowhere, also where it is on standard error', () => {
  const collected: string[] = []
  const written: string[] = []
  const asked: number[] = []
  const extension: LogExtension = {
    redact: (text) => text,
    collect: ({ message }) => void collected.push(message),
    collectLines: (_, lines) => void collected.push(...lines.map(({ message }) => message)),
    admit: (lines) => {
      asked.push(lines)
      return 2
    },
  }
  const sink = (line: string) => void written.push(JSON.parse(line).message)
  const log = createLog({ system: new TestSystem(), sink }).with({}, extension)
  const context = { requestId: 'req_1', invocationId: 'ivc_1' }
  const prepared = { release: { releaseId: 'rel_1' } } as Invocation['prepared']
  const logs = ['a', 'b', 'c'].map((message) => ({ level: 'info', message, data: null }) as const)
  const usage = { usedClock: false, usedRandom: false, usedIdentity: false, cpuMicros: 1 }
  const definition = { name: 'tasks.say' } as FunctionManifest
  const call = (lines: typeof logs) =>
    logOutcome(log, { prepared, context }, definition, {
      kind: 'failed',
      code: 'X',
      ...usage,
      logs: lines,
    })
  call(logs)
  call([])
  expect({ asked, collected, written }).toEqual({
    asked: [3],
    collected: ['"a"', '"b"'],
    written: ['a', 'b'],
  })
})

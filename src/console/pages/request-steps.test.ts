import { expect, test } from 'vitest'
import type { LogRecord } from '../../wire/logs.ts'
import { requestSteps } from './request-steps.ts'

let cursors = 0

function record(atMicros: number, more: Partial<LogRecord> = {}): LogRecord {
  cursors++
  return {
    cursor: `logc_${cursors}`,
    atMicros: String(1_700_000_000_000_000n + BigInt(atMicros)),
    stream: 'platform',
    level: 'info',
    event: 'event',
    message: 'message',
    projectId: 'prj' as never,
    environmentId: 'env' as never,
    ...more,
  } as LogRecord
}

const brief = (records: readonly LogRecord[]) =>
  requestSteps(records).steps.map(({ name, beginsMicros, takesMicros, isInside }) => [
    name,
    beginsMicros,
    takesMicros,
    isInside,
  ])

test('a record with a duration begins before it was written', () => {
  const request = record(1_000, { event: 'http.request', durationMicros: '900' })
  const line = record(500, { event: 'line' })
  expect(brief([line, request])).toEqual([
    ['http.request', 0, 900, false],
    ['line', 400, null, false],
  ])
  expect(requestSteps([line, request]).totalMicros).toBe(900)
})

test('the records of an invocation stand together, below the step that spans them', () => {
  const one = { invocationId: 'ivc_1', function: 'a.b', event: 'function.log' }
  const other = { invocationId: 'ivc_2', function: 'c.d', event: 'function.log' }
  expect(brief([record(0, one), record(10, other), record(30, one)])).toEqual([
    ['a.b', 0, 30, false],
    ['function.log', 0, null, true],
    ['function.log', 30, null, true],
    ['c.d', 10, null, false],
    ['function.log', 10, null, true],
  ])
})

test('an exported trace is named once, and a field of another form is not', () => {
  const id = 'a1'.repeat(16)
  const traced = { fields: { trace_id: id } }
  const hostile = [7, '', 'x'.repeat(1_000_000), `${id}\n`, '\u202e<img src=x>', { id }]
  const { traceIds } = requestSteps([
    record(0, traced),
    record(1, traced),
    ...hostile.map((trace_id) => record(2, { fields: { trace_id } })),
  ])
  expect(traceIds).toEqual([id])
})

test('fields that a Function names as it likes do not move a step', () => {
  const hostile = ['1', -5, 1e300, null, {}].map((durationMicros, at) =>
    record(at, { fields: { durationMicros } }),
  )
  expect(brief(hostile).map(([, begins]) => begins)).toEqual([0, 1, 2, 3, 4])
})

test('no record has no step', () => {
  expect(requestSteps([])).toEqual({ steps: [], totalMicros: 0, traceIds: [] })
})

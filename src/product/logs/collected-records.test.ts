/** The JSON of records that the lines of a Function become. */
import { expect, test } from 'vitest'
import type { LineTexts } from '../../telemetry/log.ts'
import { lineRecords } from './collected-records.ts'

const CALL = { trace_id: 'ours', span_id: 's' }

function fieldsOf(call: Readonly<Record<string, string>>, data: string | null): string | undefined {
  const line: LineTexts = { level: 'info', message: '"hello"', data }
  const [record] = lineRecords(call, [line], 1n)
  JSON.parse(record!)
  return /"fields":(\{.*\})\}$/.exec(record!)?.[1]
}

test('a record has each field once, and the field of the line replaces that of its call', () => {
  const data = '{"trace_id":"mine","amount":3}'
  expect(fieldsOf(CALL, data)).toBe('{"trace_id":"mine","span_id":"s","amount":3}')
})

test('a record without fields of its line has those of its call', () => {
  expect(fieldsOf(CALL, null)).toBe('{"trace_id":"ours","span_id":"s"}')
  expect(fieldsOf(CALL, '{}')).toBe('{"trace_id":"ours","span_id":"s"}')
})

test('data that are not an object are one field of the record', () => {
  expect(fieldsOf(CALL, '[1,2]')).toBe('{"trace_id":"ours","span_id":"s","data":[1,2]}')
  expect(fieldsOf({}, '7')).toBe('{"data":7}')
})

test('a record has no fields if neither its line nor its call has any', () => {
  expect(fieldsOf({}, null)).toBeUndefined()
  expect(fieldsOf({}, '{}')).toBeUndefined()
})

import { expect, test } from 'vitest'
import { Timestamp, TypedId, type Value } from '../../value/values.ts'
import { describeAt } from './found-values.ts'

const VALUE: Value = new Map<string, Value>([
  ['text', 'é😀'],
  ['none', null],
  ['flag', true],
  ['count', 5n],
  ['share', 0.5],
  ['at', new Timestamp(1n)],
  ['bytes', new Uint8Array(3)],
  ['id', new TypedId('messages_01JZ0000000000000000000000')],
  ['list', [new Map([['a-b', [1]]])]],
])

test.each([
  ['result', 'an object of 9 fields'],
  ['result.text', 'a string of 2 characters'],
  ['result.none', 'null'],
  ['result.flag', 'a boolean'],
  ['result.count', 'an int64 (a bigint)'],
  ['result.share', 'a float64 (a number)'],
  ['result.at', 'a timestamp (a bigint)'],
  ['result.bytes', 'bytes, 3 of them'],
  ['result.id', 'an ID of messages'],
  ['result.list', 'an array of 1 item'],
  ['result.list[0].a-b[0]', 'a float64 (a number)'],
  ['result.list[1]', 'absent'],
  ['result.missing', 'absent'],
  // The path hides a key that may be a secret.
  ['result.*', null],
  ['result.*.text', null],
])('the value at %s is %s', (path, description) => {
  expect(describeAt(VALUE, path)).toBe(description)
})

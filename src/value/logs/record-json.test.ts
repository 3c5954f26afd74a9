import { expect, test } from 'vitest'
import { jsonEntries, jsonRecord } from './record-json.ts'

test('a record has the entries of all its parts, and empty parts leave no comma', () => {
  const shared = jsonEntries({ requestId: 'req_1', function: 'notes:list' })
  const record = jsonRecord('', '"message":"hello"', shared, jsonEntries({}), '"data":[1]')
  expect(JSON.parse(record)).toEqual({
    message: 'hello',
    requestId: 'req_1',
    function: 'notes:list',
    data: [1],
  })
  expect(jsonRecord('', jsonEntries({}))).toBe('{}')
})

test('a record escapes what terminals interpret, in names and values, and keeps its value', () => {
  const entries = { '\u202ename': '\u009b31m', text: 'a\u2028b\ufeff' }
  const record = jsonRecord(jsonEntries(entries))
  expect(record).toBe('{"\\u202ename":"\\u009b31m","text":"a\\u2028b\\ufeff"}')
  expect(JSON.parse(record)).toEqual(entries)
})

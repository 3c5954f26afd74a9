import { expect, test } from 'vitest'
import { encodeStored } from '../../value/stored.ts'
import { TypedId, type Value } from '../../value/values.ts'
import { namedDocuments } from './prefetched-documents.ts'

const idOf = (number: number): string => `notes_${String(number).padStart(26, '0')}`

test('every typed ID is found, at any depth and with duplicates', () => {
  const deep = new Map<string, Value>([['of', [new TypedId(idOf(2)), new TypedId(idOf(1))]]])
  const value = new Map<string, Value>([
    ['deep', deep],
    ['id', new TypedId(idOf(1))],
    ['text', idOf(3)],
  ])
  expect(namedDocuments(encodeStored(value))).toEqual([idOf(2), idOf(1), idOf(1)])
})

test('only the first 64 typed IDs are returned', () => {
  const many = Array.from({ length: 10_000 }, (_, number) => new TypedId(idOf(number)))
  const named = namedDocuments(encodeStored(new Map<string, Value>([['ids', many]])))
  expect(named).toEqual(many.slice(0, 64).map(({ id }) => id))
})

import { expect, test } from 'vitest'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { StoredFields } from './stored-fields.ts'

const tableOf = (...names: readonly string[]) => ({
  name: 'notes',
  fields: Object.fromEntries(names.map((name) => [name, { type: 'string' } as const])),
  indexes: [],
})

/** Fields over a store whose writes wait until the test completes them, or fails them. */
function heldFields(shape: FieldShape) {
  const stored = new Map([['notes', shape]])
  const writes: PromiseWithResolvers<void>[] = []
  const fields = new StoredFields({
    fieldShapes: () => stored,
    async setFieldShapes(shapes) {
      const write = Promise.withResolvers<void>()
      writes.push(write)
      await write.promise
      for (const [table, each] of shapes) stored.set(table, each)
    },
  })
  return { fields, stored, writes, shape: () => fields.of('notes').shape }
}

const turns = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}

test('fields are known once they are durable, and known ones are not stored twice', async () => {
  const { fields, writes, shape } = heldFields({ a: null })
  await fields.extend([tableOf('a')])
  expect(writes).toEqual([])
  const extending = fields.extend([tableOf('a', 'b')])
  await turns()
  expect(shape()).toEqual({ a: null })
  writes[0]!.resolve()
  await extending
  expect(shape()).toEqual({ a: null, b: null })
})

test('each of two extensions has the fields of the other', async () => {
  const { fields, stored, writes, shape } = heldFields({})
  const extending = [fields.extend([tableOf('a')]), fields.extend([tableOf('b')])]
  await turns()
  writes[0]!.resolve()
  await extending[0]
  await turns()
  writes[1]!.resolve()
  await extending[1]
  expect(shape()).toEqual({ a: null, b: null })
  expect(stored.get('notes')).toEqual(shape())
})

test('an extension that could not be stored is repeated by the next one', async () => {
  const { fields, writes, shape } = heldFields({})
  const failing = fields.extend([tableOf('a')])
  await turns()
  writes[0]!.reject(new Error('the store'))
  await expect(failing).rejects.toThrow('the store')
  expect(shape()).toEqual({})
  const extending = fields.extend([tableOf('a')])
  await turns()
  writes[1]!.resolve()
  await extending
  expect(shape()).toEqual({ a: null })
})

test('fields that are declared while a compaction removes them are added again', async () => {
  const { fields, writes, shape } = heldFields({ a: null, b: null })
  fields.beginCompaction('notes', 'one')
  expect(fields.keep('notes', 'one', { a: null })).toBe(true)
  expect(fields.keep('notes', 'another', { c: null })).toBe(false)
  await fields.endCompaction('notes', 'another')
  expect(shape()).toEqual({ a: null, b: null })
  const ending = fields.endCompaction('notes', 'one')
  await turns()
  const extending = fields.extend([tableOf('b')])
  await turns()
  writes[0]!.resolve()
  await ending
  expect(shape()).toEqual({ a: null })
  await turns()
  writes[1]!.resolve()
  await extending
  expect(shape()).toEqual({ a: null, b: null })
})

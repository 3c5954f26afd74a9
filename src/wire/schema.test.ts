import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { message } from './schema.ts'

interface Declared {
  allows(data: unknown): boolean
  extends(definition: 'object'): boolean
}

const files = readdirSync(import.meta.dirname).filter((name) => /^[a-z-]+\.ts$/.test(name))
const modules = await Promise.all(
  files.map((file): Promise<Record<string, unknown>> => {
    return import(new URL(file, import.meta.url).href)
  }),
)
const declared = modules
  .flatMap((exported) => Object.entries(exported))
  .filter((entry): entry is [string, Declared] => Object.hasOwn(Object(entry[1]), 'json'))
  .filter(([name]) => name !== 'message')

/** Messages, and the fields that several of them share. */
const objects = declared.filter(([, schema]) => schema.extends('object'))
const fields = declared.filter(([, schema]) => !schema.extends('object'))

test('the exports that are messages are found', () => {
  const names = objects.map(([name]) => name)
  expect(names).toEqual(expect.arrayContaining(['OidcLoginRequest', 'Login', 'AuditPage']))
  expect(names.length).toBeGreaterThan(40)
  expect(fields.map(([name]) => name)).toEqual(expect.arrayContaining(['ChannelName', 'U64']))
})

test.each(objects)('%s is an object: no list, null, text, number or boolean', (_, schema) => {
  for (const data of [[], [[]], [{}], [''], null, '', 'x', '1', 0, 1, true]) {
    expect(schema.allows(data), JSON.stringify(data)).toBe(false)
  }
})

test.each(fields)('%s is one value: no list, null, boolean or object', (_, schema) => {
  for (const data of [[], ['x'], null, true, {}, undefined]) {
    expect(schema.allows(data), JSON.stringify(data)).toBe(false)
  }
})

test('no object inside of a message is a list, whatever its fields may be', () => {
  const Outer = message({
    'optional?': { 'one?': 'string', 'deep?': { 'two?': 'string' } },
    'record?': { '[string]': 'string' },
    'list?': 'string[]',
  })
  for (const good of [
    { optional: {}, record: {}, list: [] },
    { optional: { one: 'x', deep: {} }, record: { any: 'x' } },
  ]) {
    expect(Outer.allows(good)).toBe(true)
  }
  for (const bad of [{ optional: [] }, { optional: { deep: [] } }, { record: [] }, []]) {
    expect(Outer.allows(bad), JSON.stringify(bad)).toBe(false)
  }
  expect(Outer([]).toString()).toContain('an object')
})

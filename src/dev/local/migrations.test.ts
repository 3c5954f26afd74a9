/** Migrations of `svc dev`: a save that requires one runs it before it is served. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LocalDevelopment, notesSchema } from '../../../testing/development/local-development.ts'

const functions = (version: number): string => `
import { mutation, query, v } from 'svc'
const clients = ['public'] as const
export const version = query({ clients, returns: v.string(), handler: () => '${version}' })
export const add = mutation({
  clients, arguments: { text: v.string() },
  handler: async (ctx, { text }) => { await ctx.db.insert('notes', { text }) },
})
export const texts = query({
  clients, returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
`
const migrations = (each: string): string => `
import { migration } from 'svc'
export default { shout: migration({ table: 'notes', each: (ctx, note) => ${each} }) }
export const requires = ['shout']
`
const SHOUT = `({ text: note.text!.toUpperCase() })`

let dev: LocalDevelopment
beforeAll(async () => {
  dev = new LocalDevelopment()
  dev.write('schema.ts', notesSchema())
  dev.write('functions/notes.ts', functions(1))
  await dev.start()
  await add('one')
  await add('two')
})
afterAll(() => dev.dispose())

const add = (text: string) => dev.call('notes.add', { text }, { kind: 'mutation' })

async function texts(): Promise<readonly string[]> {
  const { result } = await dev.call('notes.texts')
  return (result!.value as readonly { readonly value: string }[]).map(({ value }) => value)
}

test('a migration that fails keeps the last code in place and names the document', async () => {
  const rejected = dev.next('rejected')
  dev.write('migrations.ts', migrations(`{ throw new Error('not yet ' + note.text) }`))
  expect((await rejected).details.join('\n')).toMatch(
    /migration shout is blocked at notes_\w+: Error: not yet one/,
  )
  expect(dev.events.filter(({ event }) => event === 'migrated')).toMatchObject([
    { name: 'shout', state: 'blocked', processed: 0, changed: 0 },
  ])
  expect(await texts()).toEqual(['one', 'two'])
})

test('a save runs the migration that it requires before it is served, and once', {
  tags: ['slow'],
}, async () => {
  const migrated = dev.next('migrated', ({ state }) => state === 'complete')
  const served = dev.next('served')
  dev.write('migrations.ts', migrations(SHOUT))
  expect(await migrated).toMatchObject({ name: 'shout', processed: 2, changed: 2 })
  await served
  expect(await texts()).toEqual(['ONE', 'TWO'])
  await add('three')
  const next = dev.next('served')
  dev.write('functions/notes.ts', functions(2))
  await next
  expect(await dev.version()).toBe('2')
  expect(await texts()).toEqual(['ONE', 'TWO', 'three'])
})

test('a migration that no Release has is named where it is required', async () => {
  const rejected = dev.next('rejected')
  dev.write('migrations.ts', `export default {}\nexport const requires = ['other']\n`)
  expect((await rejected).details.join('\n')).toContain('after the migration other is complete')
  const served = dev.next('served')
  dev.write('migrations.ts', migrations(SHOUT))
  await served
})

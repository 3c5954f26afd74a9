/**
 * @module-tag slow
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { write } from '../../../testing/backups/backed-up-server.ts'
import { CopiedServer } from '../../../testing/backups/copied-servers.ts'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ text: v.optional(v.string()), body: v.string() }).unique('byBody', ['body']),
})
`
const MIGRATIONS = `import { migration } from 'svc'
export default {
  moveText: migration({
    table: 'notes',
    each: (ctx, note) => ({ body: note.text, text: undefined }),
  }),
}
export const requires = ['moveText']
`
const FUNCTIONS = `import { query, v } from 'svc'
export const list = query({
  clients: ['public'], returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ body }) => body),
})
`

let copied: CopiedServer
let dev: LocalDevelopment
beforeEach(async () => {
  copied = await CopiedServer.open()
  dev = new LocalDevelopment()
  dev.write('schema.ts', SCHEMA)
  dev.write('functions/notes.ts', FUNCTIONS)
})
afterEach(async () => {
  await dev.dispose()
  await copied.dispose()
})

const requestOf = (redaction: object) => ({
  ...copied.request,
  redaction: Buffer.from(JSON.stringify(redaction)),
})

test('a migration of the Workspace runs on redacted documents before they are served', async () => {
  const { server } = copied
  await server.parts.store.setFieldShapes(new Map([['notes', { text: null }]]))
  await server.commit(
    1,
    write('notes', 1, '{"text":"Jane 1"}'),
    write('notes', 2, '{"text":"Jane 2"}'),
  )
  await server.base()
  dev.write('migrations.ts', MIGRATIONS)
  const migrated = dev.next('migrated')
  await dev.start({ copy: requestOf({ tables: { notes: { text: 'fake' } } }) })
  expect(await migrated).toMatchObject({ name: 'moveText', state: 'complete', changed: 2 })
  const listed = (await dev.call('notes.list')).result?.value as { value: string }[]
  const texts = listed.map(({ value }) => value)
  expect(texts).toEqual([0, 1].map(() => expect.stringMatching(/^(?!Jane)[A-Z][a-z]{3} \d$/)))
  expect(new Set(texts).size).toBe(2)
})

test('a Workspace that is not valid is reported, and the root stays empty', async () => {
  await copied.server.base()
  dev.write('functions/notes.ts', 'export const = 1')
  const started = dev.start({ copy: requestOf({ tables: {} }) })
  await expect(started).rejects.toMatchObject({ code: 'WORKSPACE_INVALID' })
  dev.write('functions/notes.ts', FUNCTIONS)
  await dev.start({ copy: requestOf({ tables: {} }) })
  expect(dev.events.find(({ event }) => event === 'copied')).toMatchObject({
    tables: [{ table: 'notes', documents: 0 }],
  })
})

/**
 * The messages that a page of the author gets for its mistakes.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LocalDevelopment, notesFunctions } from '../../../testing/development/local-development.ts'
import { createClient } from '../../app-client/node.ts'
import type { Query } from '../../app-client/references.ts'

const FIND = `
export const find = query({
  clients, arguments: { text: v.string({ maximumLength: 3 }) }, returns: v.null(),
  handler: () => null,
})
`
const find = {
  kind: 'query',
  name: 'notes.find',
  arguments: { text: 'string' },
} as Query<{ text: string }, null, never>
const GENERIC = 'The arguments do not match the validators of the Function.'
const EXPLAINED = `${GENERIC} arguments.text: at most 3 characters.`

test('only a page of the author receives the argument and the rule of a violation', async () => {
  const dev = new LocalDevelopment()
  try {
    dev.write('functions/notes.ts', notesFunctions(1) + FIND)
    dev.write('svc.json', '{ "client": "web" }')
    const { targets } = await dev.start()
    const settings = JSON.parse(readFileSync(join(dev.workspace, 'web/dev.json'), 'utf8'))
    expect(targets).toContain(settings.target)
    expect(settings.target).toBe('workspace:default')
    const client = createClient(settings)
    await expect(client.query(find, { text: 'long' })).rejects.toMatchObject({ message: EXPLAINED })
    const watched = new Promise((resolve) => {
      client.watch(find, { text: 'long' }, () => undefined, resolve)
    })
    expect(await watched).toMatchObject({ code: 'ARGUMENTS_INVALID', message: EXPLAINED })
    client.close()
    const other = createClient({ ...settings, target: 'channel:dev' })
    await expect(other.query(find, { text: 'long' })).rejects.toMatchObject({ message: GENERIC })
  } finally {
    await dev.dispose()
  }
})

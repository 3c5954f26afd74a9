/**
 * The texts that an editor shows for the types of documents.
 *
 * @module-tag slow
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hoverIn } from '../../../testing/typed-functions/editor.ts'
import { writeWorkspace } from '../new-workspaces.ts'

const SOURCE = `import { type NewDoc, query } from 'svc'
export const show = query({
  handler: async (ctx) => {
    const messages = ctx.db.table('messages').scan()
    const all = await messages.collect()
    const first = await messages.first()
    const page = await messages.paginate({ cursor: null, limit: 1 })
    const fields: NewDoc<'channels'> = { name: 'general' }
    return [all, first, page, fields]
  },
})
`

test('an editor shows the type of a document by its name', () => {
  const workspace = join(mkdtempSync(join(tmpdir(), 'svc-hover-')), 'chat')
  onTestFinished(() => rmSync(join(workspace, '..'), { recursive: true }))
  writeWorkspace(workspace, { name: 'Chat' })
  const file = join(workspace, 'functions/show.ts')
  writeFileSync(file, SOURCE)
  const hover = hoverIn(workspace, file)
  expect(['all', 'first', 'page', 'fields'].map((name) => hover(`const ${name}`))).toEqual([
    'const all: Doc<"messages">[]',
    'const first: Doc<"messages"> | null',
    'const page: Page<Doc<"messages">>',
    'const fields: NewDoc<"channels">',
  ])
})

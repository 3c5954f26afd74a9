/**
 * @module-tag slow
 */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeHere } from '../../../testing/describe-here.ts'
import type { Fault } from '../../errors/fault.ts'
import { runBuild } from '../building/commands.ts'
import { writeWorkspace } from '../new-workspaces.ts'
import { startTypeChecker } from './type-check.ts'

const SOURCE = `import { mutation, query, v } from 'svc'

export const find = query({
  clients: ['public'],
  handler: (ctx) => ctx.db.table('messages').index('byTickets').collect(),
})

export const like = mutation({
  clients: ['public'],
  arguments: { id: v.id('messages') },
  handler: async (ctx, { id }) => {
    ctx.db.patch(id, { likes: 1n })
    return ctx.fail('GONE')
  },
})
`

test('a build checks types in a process of its own unless the check is turned off', async () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'svc-types-')))
  writeWorkspace(directory, { name: 'Chat' })
  writeFileSync(join(directory, 'functions/extra.ts'), SOURCE)
  const request = { workspaceDirectory: directory, describe: describeHere }
  const fault: Fault = await runBuild({ ...request, startTypeChecker }).then(
    () => expect.unreachable(),
    (error) => error,
  )
  expect(fault.code).toBe('WORKSPACE_INVALID')
  const lines = fault.detail!.split('\n')
  expect(lines.filter((line) => line.startsWith('functions/'))).toEqual([
    'functions/extra.ts:5:52',
    'functions/extra.ts:13:21',
    'functions/extra.ts:12:5',
  ])
  expect(fault.detail).toContain('The table has no index "byTickets".')
  expect(fault.detail).toContain('Nothing waits for ctx.db.patch')
  expect(fault.detail).toContain('does not declare the error "GONE"')
  const { build } = await runBuild(request)
  expect(build.description.functions).toHaveLength(6)
  rmSync(directory, { recursive: true })
})

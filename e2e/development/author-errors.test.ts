/**
 * Rejected and failed calls as authors and operators see them, with the compiled server: error
 * classes, stack traces with lines of the Workspace, and one log record per rejection.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Application,
  application,
  int64,
  type Json,
  mutation,
  operationId,
  query,
  type Reply,
  string,
} from '../application.ts'
import { argv } from '../argv.ts'

const SOURCE = `import { mutation, UniqueViolation, v } from 'svc'

const arguments_ = { name: v.string() }
const clients = ['confidential'] as const

export const returned = mutation({
  clients,
  arguments: arguments_,
  handler: (ctx, { name }) => ctx.db.insert('channels', { name }), // returned
})

export const caught = mutation({
  clients,
  arguments: arguments_,
  returns: v.array(v.string()),
  handler: async (ctx, { name }) => {
    try {
      await ctx.db.insert('channels', { name })
    } catch (error) {
      if (error instanceof UniqueViolation) return [error.table, error.index]
      throw error
    }
    return []
  },
})
`
const LINE = SOURCE.split('\n').findIndex((line) => line.endsWith('// returned')) + 1

let app: Application
beforeAll(async () => {
  app = await application((workspace) =>
    writeFileSync(join(workspace, 'functions/names.ts'), SOURCE),
  )
})
afterAll(() => app?.installation.dispose())

const add = (name: string, more: object = {}) =>
  mutation(app, { function: 'names.returned', arguments: { name: string(name) }, ...more })

/** Returns the records that the server logged about the request of a reply. */
async function recordsOf({ headers }: Reply): Promise<Json[]> {
  const requestId = headers.get('x-service-request-id')
  const found = () =>
    app.server.lines
      .filter((line) => line.includes(`"${requestId}"`))
      .map((line) => JSON.parse(line) as Json)
  await expect.poll(() => found().length).toBeGreaterThan(0)
  return found()
}

test('an uncaught violation is a conflict whose trace has the line of the Workspace', async () => {
  expect((await add('one')).status).toBe(200)
  const twice = await add('one')
  expect(twice.status).toBe(409)
  expect(twice.body.error).toMatchObject({ code: 'UNIQUE_VIOLATION', retryable: false })
  const [failed, rejected] = await recordsOf(twice)
  expect(failed).toMatchObject({ event: 'function.failed', function: 'names.returned' })
  expect(failed.trace.split('\n')[0]).toContain(`functions/names.ts:${LINE}:`)
  expect(rejected).toMatchObject({ event: 'request.rejected', errorCode: 'UNIQUE_VIOLATION' })
})

test('a violation can be caught by the class of the module svc', async () => {
  await add('two')
  const caught = await mutation(app, {
    function: 'names.caught',
    arguments: { name: string('two') },
  })
  expect(caught.body.result).toEqual({
    type: 'array',
    value: [string('channels'), string('byName')],
  })
})

test('a rejection names the argument and the rule, and not the value', async () => {
  const canary = 'kept out of the log'
  const rejected = await query(app, {
    function: 'channels.list',
    arguments: { nope: string(canary), n: int64(1) },
  })
  expect(rejected.body.error.code).toBe('ARGUMENTS_INVALID')
  const records = await recordsOf(rejected)
  expect(records).toMatchObject([
    {
      event: 'request.rejected',
      level: 'info',
      errorCode: 'ARGUMENTS_INVALID',
      clientId: app.clientId,
      releaseId: app.releaseId,
      function: 'channels.list',
      detail: 'arguments.n: no undeclared field',
    },
  ])
  expect(app.server.lines.join('\n')).not.toContain(canary)
})

test('a replay under the rotated key returns the original result', async () => {
  const remote = argv`--remote --root ${app.installation.productRoot}`
  const list = argv`credentials list ${remote} --client ${app.clientId}`
  const { credentialId } = (await app.svc(list)).credentials[0]
  const same = { operationId: operationId() }
  const original = await add('three', same)
  expect(original.status).toBe(200)
  const which = argv`--client ${app.clientId} --credential ${credentialId}`
  const { key } = await app.svc(argv`credentials rotate ${remote} ${which}`)
  await app.svc(argv`credentials revoke ${remote} ${which}`)
  expect((await add('three', same)).body.error.code).toBe('APPLICATION_KEY_INVALID')
  const replay = await add('three', { ...same, key })
  expect(replay.body.result).toEqual(original.body.result)
  expect(replay.body.metadata).toEqual({ ...original.body.metadata, replayed: true })
})

/**
 * A job with a part of an operator's rights: what it may do, what is recorded, how it ends.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'

let app: Application
beforeAll(async () => {
  app = await application()
})
afterAll(async () => {
  await app?.installation.dispose()
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const home = () => join(app.installation.directory, 'job')
const job = () => ({ SERVICE_CONFIG_HOME: home() })

async function derive(...capabilities: readonly string[]): Promise<Json> {
  const each = capabilities.flatMap((capability) => argv`--capability ${capability}`)
  const scope = argv`--root ${app.installation.productRoot}`
  return app.svc(argv`sessions derive ${each} ${scope} --lifetime 10m --config-home ${home()}`)
}

async function attempt(args: readonly string[], environment = {}): Promise<[number | null, Json]> {
  const { status, stdout } = await app.installation.svc(argv`${args} --json`, environment)
  return [status, JSON.parse(stdout)]
}

test('a job runs Functions as the operator, and each record of it names its purpose', async () => {
  const { session, accessToken } = await derive('functions:invoke', 'releases:read')
  expect([session.purpose, accessToken]).toEqual(['job', null])
  const create = argv`call channels.create {"name":"general","author":"job"} --operator`
  const target = argv`--target channel:production ${remote()}`
  const created = await app.svc(argv`${create} ${target}`, job())
  expect(created.metadata).toMatchObject({ kind: 'mutation', replayed: false })
  const { operationId } = created.metadata
  const repeat = argv`${create} ${target} --operation-id ${operationId}`
  expect((await app.svc(repeat, job())).metadata).toMatchObject({ operationId, replayed: true })
  const listed = await app.svc(argv`call channels.list --operator ${target}`, job())
  expect(JSON.stringify(listed.result)).toContain('general')
  const [status, denied] = await attempt(argv`config list ${remote()}`, job())
  expect([status, denied.error.code]).toEqual([3, 'PLATFORM_ACCESS_DENIED'])
  await expect
    .poll(async () => {
      const { items } = await app.svc(argv`audit --operation product.function.invoke`)
      return items.map(({ subject, outcome, purpose, sessionId }: Json) => {
        return [subject, outcome, purpose, sessionId === session.sessionId]
      })
    })
    .toEqual([
      ['channels.list channel:production', 'succeeded', 'job', true],
      ['channels.create channel:production', 'succeeded', 'job', true],
    ])
})

test('a logout ends the session of a job and its stream within a second', async () => {
  await derive('logs:follow', 'logs:read')
  const { accessToken } = JSON.parse(readFileSync(join(home(), 'credentials-v1.json'), 'utf8'))
  const { projectId, environmentId } = JSON.parse(
    readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8'),
  )
  const base = `${app.server.management}/v1/projects/${projectId}/environments/${environmentId}`
  const headers = { authorization: `Bearer ${accessToken}` }
  const stream = await fetch(`${base}/logs/follow`, { headers })
  expect(stream.status).toBe(200)
  const reader = stream.body!.getReader()
  expect((await reader.read()).done).toBe(false)
  await app.svc(argv`logout`)
  const revokedAt = performance.now()
  expect((await fetch(`${base}/logs`, { headers })).status).toBe(401)
  for (;;) if ((await reader.read()).done) break
  // The figure is for the record; a machine under load may take longer.
  process.stdout.write(`the stream ended after ${Math.round(performance.now() - revokedAt)} ms\n`)
  const [status, ended] = await attempt(argv`whoami`, job())
  expect([status, ended.error.code]).toEqual([3, 'CLIENT_NOT_LOGGED_IN'])
})

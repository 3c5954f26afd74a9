/**
 * `svc watch` against the compiled server, which is killed and restarted in between.
 *
 * @module-tag slow
 */
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { superviseProcess } from '../../testing/servers/supervisor.ts'
import { type Application, application, createKey, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENTS } from '../harness.ts'

let app: Application
let key: string
beforeAll(async () => {
  app = await application()
  ;({ key } = await createKey(app, {}))
})
afterAll(async () => {
  await app?.installation.dispose()
})

const where = () =>
  argv`
    channels.list {} --remote --root ${app.installation.productRoot}
    --url ${app.server.application!} --key-env KEY --target channel:production
  `

async function createChannel(name: string): Promise<void> {
  const created = await mutation(app, {
    function: 'channels.create',
    arguments: { name: string(name), author: string('me') },
  })
  expect(created.status).toBe(200)
}

test.each(CLIENTS)('$build prints each state, also after a kill of the server', async (each) => {
  const process = superviseProcess(argv`${each.command} watch ${where()} --json`, {
    signal: 'INT',
    directory: app.installation.directory,
    environment: { ...app.installation.clientEnvironment, ...each.needs, KEY: key },
  })
  let errors = ''
  process.stderr.on('data', (text: string) => {
    errors += text
  })
  const lines = createInterface({ input: process.stdout })[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value!)
  const shows = (name: string) => expect.stringContaining(`"${name} of ${each.build}"`)
  try {
    const first = await next()
    expect(first).toMatchObject({ version: 1, revision: '1', releaseId: app.releaseId })
    await createChannel(`one of ${each.build}`)
    const second = await next()
    expect([second.revision, JSON.stringify(second.result)]).toEqual(['2', shows('one')])
    await app.restart('kill')
    await expect.poll(() => errors).toContain('Not connected')
    await createChannel(`two of ${each.build}`)
    const third = await next()
    expect([third.revision, JSON.stringify(third.result)]).toEqual(['3', shows('two')])
    expect(BigInt(third.snapshotSequence) > BigInt(second.snapshotSequence)).toBe(true)
    expect(await process.stop()).toBe(130)
  } finally {
    process.kill()
  }
})

test('a key without the scope realtime is denied with a next step', async () => {
  const { status, stderr } = await app.installation.svc(argv`watch ${where()}`, { KEY: app.key })
  expect([status, stderr]).toEqual([
    expect.any(Number),
    expect.stringContaining('AUTH_POLICY_DENIED'),
  ])
  expect(status).not.toBe(0)
  expect(stderr).toContain('Use a key whose scopes include realtime and query')
})

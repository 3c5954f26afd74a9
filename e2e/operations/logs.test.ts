/**
 * The log of an Environment, read by svc from the compiled server.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Supervised, superviseProcess } from '../../testing/servers/supervisor.ts'
import { type Application, action, application, string } from '../application.ts'
import { argv } from '../argv.ts'
import { DECOMPRESSED, filesBelow, findLocations } from '../canaries.ts'
import { CLIENT, run } from '../harness.ts'

const FUNCTIONS = `
  import { action, v } from 'svc'

  export const say = action({
    clients: ['confidential'],
    arguments: { text: v.string() },
    returns: v.string(),
    uses: { secrets: ['API_KEY'] },
    handler: async (ctx, { text }) => {
      const secret = await ctx.config.secret('API_KEY')
      console.warn(text.length + ' characters, with ' + secret)
      ctx.log.debug('detail', { header: { authorization: 'Bearer ' + secret } })
      return text
    },
  })
`

let app: Application
const secret = randomBytes(32).toString('base64url')
const argument = randomBytes(32).toString('base64url')
const remote = () => argv`--remote --root ${app.installation.productRoot}`

beforeAll(async () => {
  app = await application(
    (workspace) => writeFileSync(join(workspace, 'functions', 'voice.ts'), FUNCTIONS),
    { SERVICE_LOG_SEGMENT_SECONDS: '1' },
  )
  const set = await run(argv`${CLIENT} config set API_KEY --secret ${remote()}`, {
    environment: app.installation.clientEnvironment,
    directory: app.installation.directory,
    input: `${secret}\n`,
  })
  expect(set.status).toBe(0)
})
afterAll(async () => {
  await app?.installation.dispose()
})

const say = async (text: string) => {
  const reply = await action(app, { function: 'voice.say', arguments: { text: string(text) } })
  expect(reply.status).toBe(200)
  return reply.headers.get('x-service-request-id')!
}

const records = async (args: readonly string[] = []) => {
  const read = await app.installation.svc(argv`logs ${remote()} --json ${args}`)
  expect([read.status, read.stderr]).toEqual([0, ''])
  return read.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

function follow(args: readonly string[]): { process: Supervised; lines: Interface } {
  const process = superviseProcess(argv`${CLIENT} logs ${remote()} --follow --json ${args}`, {
    signal: 'INT',
    directory: app.installation.directory,
    environment: { ...app.installation.clientEnvironment },
  })
  return { process, lines: createInterface({ input: process.stdout }) }
}

test('a request finds its records, without its arguments and without a secret', async () => {
  const request = await say(argument)
  await expect.poll(() => records(argv`--request ${request}`)).toHaveLength(2)
  const [warned, detail] = await records(argv`--request ${request}`)
  expect(warned).toMatchObject({
    stream: 'function',
    level: 'warn',
    event: 'function.log',
    function: 'voice.say',
    message: `${argument.length} characters, with [redacted]`,
    requestId: request,
    releaseId: app.releaseId,
    clientId: app.clientId,
  })
  expect(detail).toMatchObject({
    level: 'debug',
    fields: { header: { authorization: 'Bearer [redacted]' } },
  })
  expect(
    await records(argv`--request ${request} --grep ${'voice.say .* detail .*header='}`),
  ).toEqual([detail])
  expect(await records(argv`--request ${request} --level error`)).toEqual([])
})

test('a change of an operator is in the stream audit, without its value', async () => {
  const value = `value-${randomBytes(8).toString('hex')}`
  await app.svc(argv`config set GREETING ${value} ${remote()}`)
  const audited = () => records(argv`--stream audit --grep product.configuration`)
  await expect.poll(audited).not.toEqual([])
  const record = (await audited()).at(-1)
  const kinds = { operatorId: 'opr_', auditId: 'aud_' }
  for (const [name, prefix] of Object.entries(kinds)) expect(record.fields[name]).toContain(prefix)
  expect(record).toMatchObject({ stream: 'audit', outcome: 'succeeded' })
  expect(JSON.stringify(await records())).not.toContain(value)
})

test('a stream follows across a restart, loses nothing and ends with its session', async () => {
  const { process, lines } = follow(argv`--function voice.say --level warn --since 0`)
  const seen: string[] = []
  // The failure that ends the command is a document of many lines.
  lines.on('line', (line) => {
    if (line.startsWith('{"cursor"')) seen.push(JSON.parse(line).requestId)
  })
  const first = await say('one')
  await expect.poll(() => seen).toContain(first)
  await app.restart('stop')
  const second = await say('two')
  await expect.poll(() => seen).toContain(second)
  expect(new Set(seen).size).toBe(seen.length)
  const { sessions } = await app.svc(argv`sessions list`)
  const { sessionId } = sessions[0]
  const revoked = await app.installation.svc(argv`sessions revoke ${sessionId}`)
  expect(revoked.status, revoked.stderr).toBe(0)
  expect(await process.ended).toBe(3)
}, 300_000)

test('no file of the root contains a secret, and no archived record does', async () => {
  await say('archived')
  const contents = () => {
    const files = filesBelow(app.installation.productRoot)
    return [...files].filter(([name]) => name.endsWith(DECOMPRESSED))
  }
  const archived = () => Buffer.concat(contents().map(([, bytes]) => bytes))
  await expect.poll(() => archived().includes('with [redacted]')).toBe(true)
  const files = filesBelow(app.installation.productRoot)
  // The arguments, too, are in no record: the Function prints their length alone.
  for (const canary of [secret, app.key]) expect(findLocations(canary, files)).toEqual([])
  expect(findLocations(argument, new Map(contents()))).toEqual([])
})

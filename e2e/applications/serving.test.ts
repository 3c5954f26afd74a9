/**
 * The target environment:default, through restarts, an archive and a restore.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Application,
  action,
  application,
  query,
  send,
  string,
  UNTYPED,
} from '../application.ts'
import { argv } from '../argv.ts'

const version = (text: string, port: number) => `
  import { action, query, v } from 'svc'

  export const which = query({
    clients: ['confidential'],
    returns: v.string(),
    handler: () => '${text}',
  })
  export const wait = action({
    clients: ['confidential'],
    uses: { network: ['localhost:${port}'] },
    returns: v.string(),
    handler: async () => '${text} ' + (await (await fetch('http://localhost:${port}/')).text()),
  })
`

let app: Application
/** An external server, whose response to an Action the test sends. */
let outside: Server
const held: ServerResponse[] = []
let one: string
let two: string

beforeAll(async () => {
  outside = createServer((_, response) => held.push(response))
  await new Promise<void>((resolve) => outside.listen(0, 'localhost', resolve))
  app = await application((workspace) => write(workspace, 'one'), {
    SERVICE_ACTION_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
  })
  one = app.releaseId
  write(app.installation.workspace, 'two')
  two = (await app.svc(argv`release ${remote()} ${UNTYPED}`)).releaseId
})
afterAll(async () => {
  outside.closeAllConnections()
  outside.close()
  await app?.installation.dispose()
})

function write(workspace: string, text: string): void {
  const { port } = outside.address() as AddressInfo
  writeFileSync(join(workspace, 'functions', 'versions.ts'), version(text, port))
}

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const policy = (args: readonly string[]) => app.svc(argv`serve-policy ${args} ${remote()}`)
const environments = (args: readonly string[]) => app.svc(argv`environments ${args} ${remote()}`)
const target = 'environment:default'

async function which(affinity?: string): Promise<string> {
  const headers: Record<string, string> = affinity ? { 'x-service-affinity': affinity } : {}
  const reply = await query(app, { target, function: 'versions.which', headers })
  return reply.status === 200
    ? `${reply.body.result.value} ${reply.headers.get('x-service-release-id')}`
    : `${reply.status} ${reply.body.error.code}`
}

async function served(revision: string): Promise<void> {
  const observed = async () => (await policy(argv`get`)).observed.revision
  await expect.poll(observed, { interval: 200 }).toBe(revision)
}

const ready = async () => (await send(app.server.application!, 'GET', '/readyz')).status

describe('the target environment:default of the compiled server', () => {
  test('environment:default cannot be called without a policy', async () => {
    expect(await which()).toBe('404 TARGET_NOT_FOUND')
    expect((await app.svc(argv`status ${remote()}`)).servingPolicy).toBe(null)
  })

  test('environment:default serves the Release of the policy, also after a crash', async () => {
    const set = await policy(argv`set --releases ${one}`)
    expect(set).toMatchObject({ desired: { revision: '1', mode: 'atomic' } })
    await served('1')
    expect(await which()).toBe(`one ${one}`)
    await app.restart('kill')
    expect(await which()).toBe(`one ${one}`)
    await served('1')
  })

  test('a split policy keeps each caller on one Release, also after a restart', async () => {
    const affinities = Array.from({ length: 40 }, () => randomBytes(8).toString('hex'))
    const ask = () => Promise.all(affinities.map(which))
    await policy(argv`set --releases ${one}=5000,${two}=5000`)
    await served('2')
    const before = await ask()
    expect(new Set(before)).toEqual(new Set([`one ${one}`, `two ${two}`]))
    expect(await ask()).toEqual(before)
    await app.restart('stop')
    await served('2')
    expect(await ask()).toEqual(before)
  })

  test('a rejected policy changes nothing', async () => {
    const stale = await app.installation.svc(
      argv`serve-policy set ${remote()} --releases ${two} --expected 1`,
    )
    expect([stale.status, stale.stderr]).toEqual([
      4,
      expect.stringContaining('PRODUCT_CAS_CONFLICT'),
    ])
    const retired = await app.installation.svc(argv`releases retire ${remote()} --release ${one}`)
    expect(retired.status).toBe(4)
    expect((await policy(argv`get`)).desired.revision).toBe('2')
  })

  test('an archive stops calls, except those in flight, and a restore resumes them', async () => {
    await policy(argv`set --releases ${two}`)
    await served('3')
    const waiting = action(app, { target, function: 'versions.wait' })
    await expect.poll(() => held.length).toBe(1)
    const { desired } = await environments(argv`archive`)
    expect(desired).toMatchObject({ revision: '1', lifecycle: 'archived' })
    expect([await ready(), await which()]).toEqual([503, '503 UNAVAILABLE'])
    expect((await environments(argv`get`)).observed).toMatchObject({ lifecycle: 'active' })
    held[0]!.end('in time')
    expect((await waiting).body.result).toEqual(string('two in time'))
    const observed = async () => (await environments(argv`get`)).observed
    const archived = { revision: '1', lifecycle: 'archived', serving: 'stopped' }
    await expect.poll(observed).toEqual(archived)
    await app.restart('kill')
    expect([await ready(), await which()]).toEqual([503, '503 UNAVAILABLE'])
    expect(await observed()).toEqual(archived)
    await environments(argv`restore`)
    const serving = { revision: '2', lifecycle: 'active', serving: 'serving' }
    await expect.poll(observed, { interval: 200 }).toEqual(serving)
    expect([await ready(), await which()]).toEqual([200, `two ${two}`])
  })

  test('a protected Environment rejects a promotion without an expected Release', async () => {
    await environments(argv`update --protection protected`)
    const promote = argv`promote ${remote()} --channel production --release ${two}`
    const blind = await app.installation.svc(promote)
    expect([blind.status, blind.stderr]).toEqual([8, expect.stringContaining('expectedReleaseId')])
    await app.svc(argv`${promote} --expected ${one}`)
  })
})

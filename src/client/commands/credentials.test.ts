import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  APPLICATION_KEY,
  type FakeServer,
  failure,
  newId,
} from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import { idMillis } from '../../value/ids.ts'

let server: FakeServer
let client: TestClient
const clientId = newId.make('app')

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const REMOTE = ['--remote', '--root', 'root']

function create(...more: string[]) {
  const named = ['--client', clientId, '--name', 'ci']
  return client.run('credentials', 'create', ...REMOTE, ...named, ...more)
}

describe('svc clients create', () => {
  it('sends an equal request for an equal identifier', async () => {
    const create = ['clients', 'create', ...REMOTE, '--name', 'web', '--kind', 'public']
    await client.run(...create, '--client-id', clientId, '--scopes', 'query,mutation,query')
    await client.run(...create, '--client-id', clientId, '--scopes', 'mutation, query')
    const sent = server
      .requestsTo('POST', `${server.base}/application-clients`)
      .map(({ body }) => body)
    expect(sent[0]).toBe(sent[1])
    expect(JSON.parse(sent[0]!)).toEqual({
      clientId,
      name: 'web',
      kind: 'public',
      maximumScopes: ['mutation', 'query'],
      createdAtMicros: `${idMillis(clientId)}000`,
    })
  })

  it('rejects unknown kinds and scopes, and invalid identifiers', async () => {
    const create = ['clients', 'create', ...REMOTE, '--name', 'web', '--kind']
    for (const wrong of [
      [...create, 'secret'],
      [...create, 'public', '--scopes', 'admin'],
      [...create, 'public', '--client-id', newId.make('crd')],
    ]) {
      expect((await client.run(...wrong)).exit).toBe(2)
    }
    expect(server.requests).toEqual([])
  })
})

describe('svc credentials create', () => {
  it('prints the key once', async () => {
    const ran = await create()
    expect(ran.exit).toBe(0)
    expect(ran.out.split('\n')).toContain(APPLICATION_KEY)
    expect(JSON.parse((await create('--json')).out)).toMatchObject({ key: APPLICATION_KEY })
  })

  it('writes the key to a new private file instead', async () => {
    const ran = await create('--key-out', 'ci.key', '--json')
    const file = join(client.home, 'ci.key')
    expect(ran.out).not.toContain(APPLICATION_KEY)
    expect(JSON.parse(ran.out)).toMatchObject({ key: null, keyFile: file })
    expect(readFileSync(file, 'utf8')).toBe(`${APPLICATION_KEY}\n`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('requests no key if the file cannot be created', async () => {
    writeFileSync(join(client.home, 'taken'), 'x')
    expect((await create('--key-out', 'taken')).exit).toBe(1)
    expect((await create('--key-out', 'missing/file')).exit).toBe(1)
    expect(readFileSync(join(client.home, 'taken'), 'utf8')).toBe('x')
    expect(server.requests).toEqual([])
  })

  it('leaves no file behind if the server rejects the request', async () => {
    server.intercept = () => failure('PLATFORM_ACCESS_DENIED')
    expect((await create('--key-out', 'ci.key')).exit).toBe(3)
    expect(existsSync(join(client.home, 'ci.key'))).toBe(false)
  })

  it('the command is not repeated after a lost response, and names the list to check', async () => {
    server.intercept = () => 'drop-after'
    const ran = await create('--scopes', 'query')
    expect(ran.exit).toBe(9)
    expect(server.requests).toHaveLength(1)
    expect(ran.err).toContain(`svc credentials list --client ${clientId}`)
  })
})

describe('an existing key', () => {
  const credentialId = newId.make('crd')
  const at = ['--client', clientId, '--credential', credentialId]
  const path = () => `${server.base}/application-clients/${clientId}/credentials/${credentialId}`
  const credential = {
    credentialId,
    clientId,
    name: 'ci',
    scopes: ['query'],
    state: 'active',
    createdAtMicros: '1800000000000000',
    revokedAtMicros: null,
    lastUsedAtMicros: null,
    rateLimit: null,
    replaces: null,
  }
  const told = { version: 1, credential, secretShownOnce: true, replayed: false }
  const run = (verb: string, ...more: string[]) =>
    client.run('credentials', verb, ...REMOTE, ...at, ...more)

  it('a key is rotated into a new file with exactly the given options', async () => {
    server.intercept = () => ({ status: 201, body: { ...told, key: APPLICATION_KEY } })
    const next = newId.make('crd')
    const more = ['--credential-id', next, '--rate-limit', '9', '--key-out', 'next.key']
    expect((await run('rotate', ...more)).exit).toBe(0)
    expect(readFileSync(join(client.home, 'next.key'), 'utf8')).toBe(`${APPLICATION_KEY}\n`)
    const [request] = server.requestsTo('POST', `${path()}/rotate`)
    expect(JSON.parse(request!.body)).toEqual({
      credentialId: next,
      createdAtMicros: String(BigInt(idMillis(next)) * 1000n),
      rateLimit: 9,
    })
    expect((await run('rotate', '--rate-limit', '0')).exit).toBe(2)
  })

  it('a lost response does not rotate a key twice; the error names the credential', async () => {
    server.intercept = () => 'drop'
    const ran = await run('rotate')
    expect(ran.exit).toBe(9)
    expect(ran.err).toMatch(/If it lists crd_\w+, revoke that/)
    expect(ran.err).not.toContain(`If it lists ${credentialId}`)
    expect(server.requests).toHaveLength(1)
  })

  it('a key is revealed, on standard output or into a file', async () => {
    server.intercept = () => ({ status: 200, body: { ...told, key: APPLICATION_KEY } })
    expect((await run('reveal')).out).toBe(`${APPLICATION_KEY}\n`)
    const ran = await run('reveal', '--key-out', 'web.key', '--json')
    expect(JSON.parse(ran.out)).toMatchObject({ key: null, credential: { credentialId } })
    expect(readFileSync(join(client.home, 'web.key'), 'utf8')).toBe(`${APPLICATION_KEY}\n`)
    server.intercept = () => failure('PRODUCT_INVALID')
    expect((await run('reveal', '--key-out', 'none.key')).exit).toBe(8)
    expect(existsSync(join(client.home, 'none.key'))).toBe(false)
  })

  it('a key is revoked and deleted, and both commands may be repeated', async () => {
    let lost = 1
    const reply = (status: 200 | 204, body?: object) => () =>
      lost-- > 0 ? ('drop' as const) : { status, ...(body && { body: body as never }) }
    const revoked = { ...credential, state: 'revoked', revokedAtMicros: '1800000000000001' }
    server.intercept = reply(200, { version: 1, credential: revoked })
    expect(await run('revoke')).toMatchObject({ exit: 0, out: `${credentialId} is revoked.\n` })
    expect(server.requestsTo('POST', `${path()}/revoke`)).toHaveLength(2)
    lost = 1
    server.intercept = reply(204)
    expect(JSON.parse((await run('delete', '--json')).out)).toEqual({
      version: 1,
      credentialId,
      state: 'deleted',
    })
    expect(server.requestsTo('DELETE', path())).toHaveLength(2)
    server.intercept = () => failure('PRODUCT_STATE_CONFLICT')
    expect((await run('delete')).exit).toBe(4)
  })
})

describe('the lists', () => {
  it('the lists are tables, and with --json the response of the server', async () => {
    const human = await client.run('clients', 'list', ...REMOTE)
    expect(human.out).toBe('CLIENT  NAME  KIND  SCOPES  CREATED\n')
    const list = ['credentials', 'list', ...REMOTE, '--client', clientId, '--json']
    expect(JSON.parse((await client.run(...list)).out)).toEqual({ version: 1, credentials: [] })
  })
})

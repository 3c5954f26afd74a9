import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeServer, failure, newId } from '../../../testing/client/fake-server.ts'
import { TestClient } from '../../../testing/client/test-client.ts'
import { parseRootDescriptor } from '../../wire/files/product-root.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  server = await new FakeServer().start()
  client = new TestClient()
  await client.login(server)
})

afterEach(() => {
  server.stop()
  client[Symbol.dispose]()
})

function link(...more: string[]) {
  return client.run('link', '--root', client.root, ...more)
}

function ids(environmentId: string = server.environmentId): string[] {
  return ['--project-id', server.projectId, '--environment-id', environmentId]
}

function file(name: string): string {
  return readFileSync(join(client.root, name), 'utf8')
}

describe('svc link', () => {
  it('initializes the directory after a successful status request', async () => {
    expect(await link(...ids())).toMatchObject({ exit: 0 })
    expect(server.requestsTo('GET', `${server.base}/status`)).toHaveLength(1)
    expect(parseRootDescriptor(file('service.json'))).toMatchObject({
      projectId: server.projectId,
      environmentId: server.environmentId,
      name: 'My App',
      slug: 'my-app',
      workspace: null,
    })
    const origin = JSON.stringify(server.origin)
    expect(file('management.json')).toBe(`{"managementOrigin":${origin},"version":1}\n`)
  })

  it.each(['PLATFORM_ACCESS_DENIED', 'PRODUCT_NOT_FOUND', 'PLATFORM_UNAVAILABLE'])(
    'writes nothing after %s',
    { tags: ['slow'] },
    async (code) => {
      server.intercept = ({ path }) => (path.endsWith('/status') ? failure(code) : null)
      expect((await link(...ids())).exit).not.toBe(0)
      expect(existsSync(client.root)).toBe(false)
    },
  )

  it('links the only Environment without a terminal', async () => {
    expect(await link()).toMatchObject({ exit: 0 })
    expect(file('service.json')).toContain(server.environmentId)
    expect(JSON.parse((await link('--json')).out)).toMatchObject({
      environmentId: server.environmentId,
    })
  })

  it('needs the identifiers without a terminal if there are several Environments', async () => {
    server.resources = 2
    const several = await link()
    expect(several).toMatchObject({ exit: 2, err: expect.stringContaining('2 Environments') })
    expect(several.err).toContain('`svc resources` lists them')
    server.resources = 0
    expect(await link()).toMatchObject({ exit: 7, err: expect.stringContaining('invitation') })
    expect(existsSync(client.root)).toBe(false)
  })

  it('needs both identifiers or none', async () => {
    expect(await link('--project-id', server.projectId)).toMatchObject({ exit: 2 })
  })

  it('finds the Project of an Environment, without a terminal', async () => {
    expect(await link('--environment-id', server.environmentId)).toMatchObject({ exit: 0, err: '' })
    const { projectId, environmentId } = server
    expect(JSON.parse(file('service.json'))).toEqual({
      version: 1,
      projectId,
      environmentId,
      name: 'My App',
      slug: 'my-app',
      createdAtMicros: expect.any(String),
      workspace: null,
      listen: null,
    })
    expect(await link('--environment-id', server.environmentId)).toMatchObject({ exit: 0 })
  })

  it('links no Environment that is unknown to the session or managed elsewhere', async () => {
    expect(await link('--environment-id', newId.make('env'))).toMatchObject({ exit: 7 })
    server.managementOrigin = 'https://other.example.com'
    expect(await link('--environment-id', server.environmentId)).toMatchObject({ exit: 4 })
    expect(existsSync(client.root)).toBe(false)
  })

  it('uses the identifiers of an initialized root', async () => {
    await link(...ids())
    rmSync(join(client.root, 'management.json'))
    expect(await link()).toMatchObject({ exit: 0 })
  })

  it('svc link does not link a root to another Environment', async () => {
    await link(...ids())
    const before = file('service.json')
    const ran = await link(...ids(newId.make('env')))
    expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining('CLIENT_ROOT_INVALID')])
    expect(file('service.json')).toBe(before)
  })

  it('svc link may be repeated', async () => {
    await link(...ids())
    expect(await link(...ids(), '--json')).toMatchObject({ exit: 0 })
  })

  it.each([
    ['1', 0],
    [' 1 ', 0],
    ['0', 2],
    ['2', 2],
    ['-1', 2],
    ['', 2],
    ['1x', 2],
    ['01', 2],
  ])('the selection %j ends with %i', async (typed, exit) => {
    client.typed = [typed]
    const ran = await link()
    expect([ran.exit, existsSync(client.root)]).toEqual([exit, exit === 0])
    expect(ran.err).toContain(server.environmentId)
  })
})

describe('a linked root', () => {
  it('a linked root is rejected with a session of another Management origin', async () => {
    await link(...ids())
    const link_ = { version: 1, managementOrigin: 'https://other.example.com' }
    writeFileSync(join(client.root, 'management.json'), JSON.stringify(link_))
    server.requests.length = 0
    for (const ran of [
      await client.run('status', '--remote', '--root', client.root),
      await link(...ids()),
    ]) {
      expect([ran.exit, ran.err]).toEqual([4, expect.stringContaining('CLIENT_ORIGIN_MISMATCH')])
    }
    expect(server.requests).toEqual([])
  })

  it('rejects --url with another origin', async () => {
    const ran = await link(...ids(), '--url', 'https://other.example.com')
    expect([ran.exit, existsSync(client.root)]).toEqual([4, false])
    const said = `--url names https://other.example.com; the session belongs to ${server.origin}.`
    expect(ran.err).toContain(said)
    expect(ran.err).not.toContain('root is linked')
  })

  it.each([
    ['service.json', '{}'],
    ['service.json', '{'],
    ['management.json', '{"version":1}'],
    ['management.json', '{"version":1,"managementOrigin":"https://x/y"}'],
    ['management.json', '{"version":1,"managementOrigin":"https://x","a":1}'],
  ])('a linked root is rejected with a damaged %s', async (name, content) => {
    await link(...ids())
    writeFileSync(join(client.root, name), content)
    const ran = await client.run('status', '--remote', '--root', client.root)
    expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining(join(client.root, name))])
  })

  it('a link is not replaced if its descriptor cannot be read', async () => {
    await link(...ids())
    rmSync(join(client.root, 'service.json'))
    mkdirSync(join(client.root, 'service.json'))
    const ran = await client.run('status', '--remote', '--root', client.root)
    expect([ran.exit, ran.err]).toEqual([1, expect.stringContaining('CLIENT_FILE_FAILED')])
    expect(ran.err).not.toContain('svc init')
  })

  it('a root without a link is rejected, and the message says how to link it', async () => {
    await link(...ids())
    rmSync(join(client.root, 'management.json'))
    const ran = await client.run('status', '--remote', '--root', 'root')
    expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining('svc link --root root')])
  })
})

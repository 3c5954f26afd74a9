import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure, newId } from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import type { Json } from '../../value/strict-json.ts'

let server: FakeServer
let client: TestClient
const [a, b] = [newId.make('rel'), newId.make('rel')]
const REMOTE = ['--remote', '--root', 'root']
const packageDigest = `sha256:${'0'.repeat(64)}`

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  server.releases.set(a, { state: 'validated', packageDigest })
  server.releases.set(b, { state: 'published', packageDigest })
  server.channels.set('production', { releaseId: a, revision: 1 })
})

/** A policy that sends one caller in twenty to `b`. */
function weighted() {
  const releases = [
    { releaseId: a, weight: 9_500 },
    { releaseId: b, weight: 500 },
  ]
  server.policy = {
    version: 1,
    desired: { revision: '5', mode: 'weighted', releases },
    observed: { revision: '4', convergedAtMicros: '1800000000000000' },
  }
  return releases
}

describe('svc releases', () => {
  it('lists what uses each Release', async () => {
    const human = await client.run('releases', 'list', ...REMOTE)
    const lines = human.out.trim().split('\n')
    expect(lines[0]).toMatch(
      /^RELEASE +STATE +CREATED +CHANNELS +POLICY +HEAD OF +SOURCE +MESSAGE$/,
    )
    expect(lines[1]).toMatch(new RegExp(`^${a}  validated .*  production +- +- +- +-$`))
    expect(lines[2]).toMatch(new RegExp(`^${b}  published .*  - +- +- +- +-$`))
    const document = JSON.parse((await client.run('releases', 'list', ...REMOTE, '--json')).out)
    expect(document).toMatchObject({
      version: 1,
      releases: [
        { releaseId: a, state: 'validated', packageDigest, channels: ['production'] },
        { releaseId: b, state: 'published', channels: [], workspaces: [], policyWeight: null },
      ],
    })
  })

  it('lists the share of callers that the serving policy sends to each', async () => {
    weighted()
    const { out } = await client.run('releases', 'list', ...REMOTE)
    expect(out).toMatch(new RegExp(`^${a} .*  production  9500 +- +- +-$`, 'm'))
    expect(out).toMatch(new RegExp(`^${b} .*  - +500 +- +- +-$`, 'm'))
    const { releases } = JSON.parse((await client.run('releases', 'list', ...REMOTE, '--json')).out)
    expect(releases).toMatchObject([{ policyWeight: 9_500 }, { policyWeight: 500 }])
  })

  it('retires a Release, and says why it cannot', async () => {
    const path = `${server.base}/releases/${b}/retire`
    const retired = { version: 1, releaseId: b, state: 'retired' }
    server.intercept = () => ({ status: 200, body: retired })
    const retire = ['releases', 'retire', ...REMOTE, '--release', b]
    expect((await client.run(...retire)).out).toBe(`${b} is retired.\n`)
    expect(JSON.parse((await client.run(...retire, '--json')).out)).toEqual(retired)
    expect(server.requestsTo('POST', path)).toHaveLength(2)
    server.intercept = () => failure('PRODUCT_STATE_CONFLICT')
    const rejected = await client.run(...retire)
    expect(rejected.exit).toBe(4)
    expect(rejected.err).toContain('PRODUCT_STATE_CONFLICT')
    expect((await client.run('releases', 'retire', ...REMOTE, '--release', 'x')).exit).toBe(2)
  })
})

describe('svc status', () => {
  it('shows the Releases of the serving policy', async () => {
    const releases = weighted()
    const { out } = await client.run('status', ...REMOTE)
    expect(out).toContain('environment:default  policy 5, served 4\n')
    expect(out).toMatch(new RegExp(`^POLICY +WEIGHT\n${a}  9500\n${b}  500\n\nCHANNEL`, 'm'))
    const { servingPolicy } = JSON.parse((await client.run('status', ...REMOTE, '--json')).out)
    const revisions = { desiredRevision: '5', observedRevision: '4' }
    expect(servingPolicy).toEqual({ ...revisions, mode: 'weighted', releases })
  })

  it('reads no policy if there is none', async () => {
    expect((await client.run('status', ...REMOTE)).out).not.toContain('environment:default')
    const { out } = await client.run('status', ...REMOTE, '--json')
    expect(JSON.parse(out).servingPolicy).toBe(null)
    expect(server.requestsTo('GET', `${server.base}/serving-policy`)).toEqual([])
  })
})

describe('svc rollback', () => {
  const rollback = (...more: string[]) =>
    client.run(
      'rollback',
      ...REMOTE,
      '--channel',
      'production',
      '--expected',
      a,
      '--to',
      b,
      ...more,
    )
  const promoted = (): { [key: string]: Json } => ({
    version: 1,
    channel: 'production',
    releaseId: b,
    previousReleaseId: a,
    revision: '2',
    changedAtMicros: '1800000000000002',
    serving: 'converged',
  })
  const isRollback = ({ path }: { path: string }) => path.endsWith('/rollback')

  it('sends the target and the exact current Release', async () => {
    server.intercept = () => ({ status: 200, body: promoted() })
    const ran = await rollback()
    expect(ran.out).toBe(`production is bound to ${b} again (revision 2).\n`)
    const [request] = server.requestsTo('POST', `${server.base}/channels/production/rollback`)
    expect(JSON.parse(request!.body)).toEqual({ targetReleaseId: b, expectedReleaseId: a })
    expect(JSON.parse((await rollback('--json')).out)).toEqual({
      version: 1,
      channel: 'production',
      releaseId: b,
      revision: '2',
      changed: true,
      previousReleaseId: a,
    })
  })

  it('reads the status after a lost response and repeats nothing', async () => {
    server.intercept = (request) => {
      if (!isRollback(request)) return null
      server.channels.set('production', { releaseId: b, revision: 2 })
      return 'drop'
    }
    expect((await rollback()).exit).toBe(0)
    server.intercept = (request) => (isRollback(request) ? 'drop' : null)
    server.channels.set('production', { releaseId: a, revision: 3 })
    expect((await rollback()).exit).toBe(9)
    expect(server.requests.filter(isRollback)).toHaveLength(2)
  })

  it.each([
    ['PRODUCT_CAS_CONFLICT', 4],
    ['PRODUCT_STATE_CONFLICT', 4],
    ['PRODUCT_INCOMPATIBLE', 8],
    ['PRODUCT_NOT_FOUND', 7],
  ] as const)('that ends in %s ends with %i', async (code, exit) => {
    server.intercept = () => failure(code)
    expect((await rollback()).exit).toBe(exit)
  })

  it('needs the Channel, the current Release and the target', async () => {
    for (const left of ['--channel', '--expected', '--to']) {
      const line = ['rollback', ...REMOTE, '--channel', 'c', '--expected', a, '--to', b]
      line.splice(line.indexOf(left), 2)
      expect((await client.run(...line)).exit).toBe(2)
    }
    expect(server.requests).toEqual([])
  })
})

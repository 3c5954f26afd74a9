import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure, type Recorded } from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import type { Json } from '../../value/strict-json.ts'

const REMOTE = ['--remote', '--root', 'root']
const MICROS = '1800000000000000'
const CONFIGURATION = {
  name: 'Shop',
  slug: 'shop',
  region: 'local',
  purpose: 'development',
  protection: 'none',
  location: 'Milan',
  workspaceTargets: 'allowed',
}

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  server.intercept = (request) => ({ status: 200, body: responseOf(request) })
})

function stateOf(revision: string, configuration: Json): { [key: string]: Json } {
  const { projectId, environmentId } = server
  return {
    version: 1,
    projectId,
    environmentId,
    desired: { revision, lifecycle: 'active', configuration },
    observed: { revision: '4', lifecycle: 'active', serving: 'serving' },
    createdAtMicros: MICROS,
    updatedAtMicros: MICROS,
  }
}

function responseOf({ method, path, headers, body }: Recorded): Json {
  if (method === 'GET') return stateOf('4', CONFIGURATION)
  const { expectedRevision, configuration = CONFIGURATION } = JSON.parse(body)
  const revision = String(BigInt(expectedRevision) + 1n)
  return {
    ...stateOf(revision, configuration),
    operation: {
      version: 1,
      operationId: String(headers['idempotency-key']),
      kind: `environment.${method === 'PUT' ? 'update' : path.split('/').at(-1)}`,
      outcome: 'applied',
      replayed: false,
      revision,
      createdAtMicros: MICROS,
    },
  }
}

const run = (verb: string, ...args: string[]) =>
  client.run('environments', verb, ...args, ...REMOTE)
const changes = () => server.requests.filter(({ method }) => method !== 'GET')

describe('svc environments update', () => {
  it.each([
    [['--name', 'New'], { name: 'New' }],
    [['--protection', 'protected'], { protection: 'protected' }],
    [['--workspace-targets', 'denied'], { workspaceTargets: 'denied' }],
    [['--no-location'], { location: null }],
    [['--purpose', 'production', '--region', 'eu'], { purpose: 'production', region: 'eu' }],
  ])('keeps the settings that %j does not name', { tags: ['slow'] }, async (args, changed) => {
    expect((await run('update', ...args)).exit).toBe(0)
    const [{ method, path, body }] = changes() as [Recorded]
    expect([method, path]).toEqual(['PUT', server.base])
    expect(JSON.parse(body)).toEqual({
      expectedRevision: '4',
      configuration: { ...CONFIGURATION, ...changed },
      changedAtMicros: expect.stringMatching(/^\d{16}$/),
    })
  })

  it.each([
    [[], 'Give at least one setting'],
    [['--purpose', 'play'], '--purpose'],
    [['--slug', 'Shop'], '--slug'],
    [['--workspace-targets', 'some'], '--workspace-targets'],
    [['--location', 'Rome', '--no-location'], '--location and --no-location'],
    [['--name', 'New', '--expected', 'newest'], '--expected'],
  ])('rejects %j and changes nothing', async (args, said) => {
    const ran = await run('update', ...args)
    expect([ran.exit, changes()]).toEqual([2, []])
    expect(ran.err).toContain(said)
  })
})

describe.each(['archive', 'restore'])('svc environments %s', (verb) => {
  it('acts on the newest revision, or on the one that is given', async () => {
    await run(verb)
    await run(verb, '--expected', '9')
    expect(changes().map(({ path }) => path)).toEqual(Array(2).fill(`${server.base}/${verb}`))
    const bodies = changes().map(({ body }) => JSON.parse(body))
    expect(bodies).toMatchObject([{ expectedRevision: '4' }, { expectedRevision: '9' }])
  })

  it('ends with 4 after a concurrent change', async () => {
    server.intercept = (request) =>
      request.method === 'POST'
        ? failure('PRODUCT_CAS_CONFLICT')
        : { status: 200, body: responseOf(request) }
    expect((await run(verb)).exit).toBe(4)
  })
})

it('svc environments get shows every setting and whether the Environment serves', async () => {
  const { out } = await run('get')
  for (const [name, value] of Object.entries(CONFIGURATION)) {
    expect(out).toMatch(new RegExp(`^${name} +${value}$`, 'm'))
  }
  expect(out).toContain('revision 4 is desired, active; serving.')
  expect(JSON.parse((await run('get', '--json')).out)).toEqual(stateOf('4', CONFIGURATION))
})

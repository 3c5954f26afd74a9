import { beforeEach, describe, expect, it } from 'vitest'
import {
  type FakeServer,
  failure,
  newId,
  type Recorded,
} from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import type { Json } from '../../value/strict-json.ts'

const REMOTE = ['--remote', '--root', 'root']
const MICROS = '1800000000000000'
/** IDs of one process are ascending. */
const A = newId.make('rel')
const B = newId.make('rel')

let server: FakeServer
let client: TestClient
let policy: { [key: string]: Json }

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  policy = policyOf('4', '3', [{ releaseId: A, weight: 10_000 }])
  server.intercept = (request) => ({ status: 200, body: responseOf(request) })
})

function policyOf(desired: string, observed: string, releases: Json) {
  const mode = 'atomic'
  return {
    version: 1,
    desired: { revision: desired, mode, releases },
    observed: { revision: observed, convergedAtMicros: observed === '0' ? null : MICROS },
  }
}

function responseOf({ method, headers, body }: Recorded): Json {
  if (method === 'GET') return policy
  const { expectedRevision, mode, releases } = JSON.parse(body)
  const revision = String(BigInt(expectedRevision) + 1n)
  return {
    ...policyOf(revision, '3', releases),
    desired: { revision, mode, releases },
    operation: {
      version: 1,
      operationId: String(headers['idempotency-key']),
      kind: 'serving_policy.set',
      outcome: 'applied',
      replayed: false,
      revision,
      createdAtMicros: MICROS,
    },
  }
}

const set = (...args: string[]) => client.run('serve-policy', 'set', ...args, ...REMOTE)
const sent = () =>
  server.requestsTo('PUT', `${server.base}/serving-policy`).map(({ body }) => JSON.parse(body))

describe('svc serve-policy set', () => {
  it('lets one Release serve all callers, at the newest revision', async () => {
    const ran = await set('--releases', A)
    expect([ran.exit, ran.out]).toEqual([
      0,
      'Set: revision 5 (atomic) is desired, and revision 3 is served until it is applied.\n',
    ])
    const releases = [{ releaseId: A, weight: 10_000 }]
    const changedAtMicros = expect.stringMatching(/^\d{16}$/)
    const request = { expectedRevision: '4', mode: 'atomic', releases, changedAtMicros }
    expect(sent()).toEqual([request])
  })

  it('sorts several Releases, at the given revision', async () => {
    await set('--releases', `${B}=500, ${A}=9500`, '--expected', '7')
    expect(sent()).toMatchObject([
      {
        expectedRevision: '7',
        mode: 'weighted',
        releases: [
          { releaseId: A, weight: 9_500 },
          { releaseId: B, weight: 500 },
        ],
      },
    ])
    expect(server.requests.map(({ method }) => method)).toEqual(['PUT'])
  })

  it.each([
    ['no list', []],
    ['no Release', ['--releases', 'newest']],
    ['two without weights', ['--releases', `${A},${B}`]],
    ['too little weight', ['--releases', `${A}=9500,${B}=499`]],
    ['one with a part of the weight', ['--releases', `${A}=9500`]],
    ['half a weight', ['--releases', `${A}=0.5,${B}=9999.5`]],
    ['two weights of one', ['--releases', `${A}=1=9999`]],
    ['a revision that is none', ['--releases', A, '--expected', 'newest']],
    ['another identifier', ['--releases', A, '--operation-id', A]],
  ])('rejects %s and sends nothing', async (_, args) => {
    expect([(await set(...args)).exit, server.requests]).toEqual([2, []])
  })

  it('sends the same bytes again when the response is lost', async () => {
    let lost = 0
    server.intercept = (request) => {
      if (request.method === 'PUT' && lost++ === 0) return 'drop-after'
      return { status: 200, body: responseOf(request) }
    }
    expect((await set('--releases', A)).exit).toBe(0)
    const [first, second] = server.requestsTo('PUT', `${server.base}/serving-policy`)
    const bytes = (request: Recorded) => [request.headers['idempotency-key'], request.body]
    expect(bytes(second!)).toEqual(bytes(first!))
  })

  it('ends with 4 after a concurrent change, and with 8 for incompatible Releases', async () => {
    for (const [code, exit] of [
      ['PRODUCT_CAS_CONFLICT', 4],
      ['PRODUCT_INCOMPATIBLE', 8],
    ] as const) {
      server.intercept = ({ method }) =>
        method === 'PUT' ? failure(code) : { status: 200, body: policy }
      expect((await set('--releases', A)).exit).toBe(exit)
    }
  })
})

describe('svc serve-policy get', () => {
  const get = (...args: string[]) => client.run('serve-policy', 'get', ...REMOTE, ...args)

  it.each([
    ['4', '4', 'revision 4 (atomic) is desired, and is served.'],
    ['4', '3', 'revision 4 (atomic) is desired, and revision 3 is served until it is applied.'],
    ['4', '0', 'revision 4 (atomic) is desired, and nothing is served until it is applied.'],
  ])('shows the weights and the served revision: %s %s', async (desired, observed, said) => {
    policy = policyOf(desired, observed, [{ releaseId: A, weight: 10_000 }])
    const { out } = await get()
    expect(out.split('\n').slice(1)).toEqual([`${A}  10000`, said, ''])
  })

  it('says that there is no policy', async () => {
    policy = policyOf('0', '0', [])
    expect((await get()).out).toBe('There is no policy: environment:default serves nothing.\n')
    expect(JSON.parse((await get('--json')).out)).toEqual(policy)
  })
})

describe('svc promote --serve', () => {
  const promote = (releaseId: string) =>
    client.run('promote', ...REMOTE, '--channel', 'main', '--release', releaseId, '--serve')

  beforeEach(() => {
    server.intercept = (request) => {
      if (!request.path.endsWith('/serving-policy')) return null
      return { status: 200, body: responseOf(request) }
    }
  })

  it('lets the promoted Release serve all callers', async () => {
    const releaseId = newId.make('rel')
    const ran = await promote(releaseId)
    expect([ran.exit, ran.out]).toEqual([0, expect.stringContaining('environment:default: ')])
    expect(sent()).toMatchObject([
      { expectedRevision: '4', mode: 'atomic', releases: [{ releaseId, weight: 10_000 }] },
    ])
  })

  it('the command does not change a policy that has only this Release', async () => {
    const releaseId = newId.make('rel')
    policy = policyOf('4', '4', [{ releaseId, weight: 10_000 }])
    expect((await promote(releaseId)).exit).toBe(0)
    expect(sent()).toEqual([])
  })
})

import { beforeEach, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'
import type { Json } from '../../../value/strict-json.ts'

const REMOTE = ['--remote', '--root', 'root']

const HEALTH = {
  version: 1,
  status: 'degraded',
  components: [
    { name: 'runtime', status: 'degraded' },
    { name: 'documents', status: 'healthy' },
  ],
}
const METRICS = {
  version: 1,
  collectedAtMicros: '1800000060000000',
  processStartedAtMicros: '1800000000000000',
  counters: {
    queriesSucceeded: '9007199254740993',
    queriesFailed: '0',
    functionCpuMicros: '1234567',
  },
  gauges: { queryCacheHitPercent: '87', processResidentBytes: '104857600', actionRunners: '0' },
  histograms: {
    queryDurationMicros: {
      count: '100',
      sumMicros: '250000',
      buckets: [
        { leMicros: '1000', count: '49' },
        { leMicros: '2500', count: '50' },
        { leMicros: '1000000', count: '98' },
      ],
    },
    actionDurationMicros: { count: '0', sumMicros: '0', buckets: [] },
  },
}

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

function environment(lifecycle: 'active' | 'archived'): Json {
  const { projectId, environmentId } = server
  const time = '1800000000000000'
  return {
    version: 1,
    projectId,
    environmentId,
    desired: {
      revision: '4',
      lifecycle,
      configuration: {
        name: 'Shop',
        slug: 'shop',
        region: 'local',
        purpose: 'development',
        protection: 'none',
        location: null,
        workspaceTargets: 'allowed',
      },
    },
    observed: { revision: '4', lifecycle, serving: 'stopped' },
    createdAtMicros: time,
    updatedAtMicros: time,
  }
}

function respondWith(body: Json) {
  server.intercept = () => ({ status: 200, body })
}

it('svc health shows each component and the worst status', async () => {
  server.intercept = ({ path }) => {
    return { status: 200, body: path === server.base ? environment('active') : HEALTH }
  }
  const { out, exit } = await client.run('health', ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toMatch(/^env_\w+ {2}degraded$/m)
  expect(out).toMatch(/^runtime +degraded$/m)
  expect(out).toMatch(/^documents +healthy$/m)
  expect(server.requestsTo('GET', `${server.base}/instances/healthz`)).toHaveLength(1)
  expect(JSON.parse((await client.run('health', '--json', ...REMOTE)).out)).toEqual({
    ...HEALTH,
    lifecycle: 'active',
  })
})

it('svc health says that the Environment is archived', async () => {
  server.intercept = ({ path }) => {
    return { status: 200, body: path === server.base ? environment('archived') : HEALTH }
  }
  const { out } = await client.run('health', ...REMOTE)
  expect(out).toMatch(/^env_\w+ {2}degraded, archived\nThe Environment is archived .*restore/)
})

it('svc metrics shows every figure that is not 0, with its unit', async () => {
  respondWith(METRICS)
  const { out, exit } = await client.run('metrics', ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toMatch(/^queriesSucceeded +9007199254740993$/m)
  expect(out).toMatch(/^functionCpu +1.23 s$/m)
  expect(out).toMatch(/^queryCacheHit +87 %$/m)
  expect(out).toMatch(/^processResident +100.0 MiB$/m)
  // The median is in the second bucket, and two of a hundred took longer than any bound.
  expect(out).toMatch(/^queryDuration +100 +2.5 ms +2.5 ms +1 s +more$/m)
  expect(out).not.toMatch(/queriesFailed|actionRunners|actionDuration/)
  expect(server.requests.map(({ path }) => path)).toEqual([`${server.base}/metrics`])
})

it('svc metrics --json prints the exact response of the server', async () => {
  respondWith(METRICS)
  expect(JSON.parse((await client.run('metrics', '--json', ...REMOTE)).out)).toEqual(METRICS)
})

it.each(['health', 'metrics'])('svc %s without the capability ends with 3', async (command) => {
  server.intercept = () => failure('PLATFORM_ACCESS_DENIED')
  expect((await client.run(command, ...REMOTE)).exit).toBe(3)
})

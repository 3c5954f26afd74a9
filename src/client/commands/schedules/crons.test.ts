import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const REMOTE = ['--remote', '--root', 'root']
const RELEASE = 'rel_00000000000000000000000001'
const DIGEST = {
  name: 'digest',
  schedule: '0 7 * * *',
  timeZone: 'Europe/Rome',
  every: null,
  function: 'mail.send',
  overlap: 'skip',
  revision: '4',
  activation: 'disabled',
  lastRunAtMicros: '1800000000000000',
  nextRunAtMicros: null,
}
const SWEEP = {
  name: 'sweep',
  schedule: null,
  timeZone: null,
  every: { milliseconds: 600_000 },
  function: 'mail.sweep',
  overlap: 'queue',
  revision: '0',
  activation: 'enabled',
  lastRunAtMicros: null,
  nextRunAtMicros: '1800000600000000',
}
const operation = (kind: string) => ({
  version: 1,
  operationId: 'opn_01MCC5RM00440WAKYHT0DB49BM',
  kind,
  outcome: 'applied',
  replayed: false,
  revision: '5',
  createdAtMicros: '1800000000000000',
})

let server: FakeServer
let client: TestClient
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  server.intercept = ({ method, path }) => {
    if (path.endsWith('/activation')) {
      const cron = { ...DIGEST, activation: 'enabled', nextRunAtMicros: '1800003600000000' }
      return { status: 200, body: { version: 1, ...cron, operation: operation('cron.enable') } }
    }
    if (path.endsWith('/run')) {
      const work = {
        scheduledId: 'sch_01MCC5RM00440WAKYHT0DB49BM',
        function: 'mail.send',
        releaseId: RELEASE,
        state: 'pending',
        dueAtMicros: '1800000000000000',
        attempts: 0,
        lastErrorCode: null,
        source: 'cron',
      }
      return { status: 200, body: { version: 1, ...work, operation: operation('cron.run') } }
    }
    if (method !== 'GET' || !path.includes('/crons')) return null
    const crons = path.endsWith('small') ? [DIGEST] : [DIGEST, SWEEP]
    return { status: 200, body: { version: 1, releaseId: RELEASE, crons } }
  }
})
describe('svc crons', () => {
  it('lists what is in force, with times, activation and runs', async () => {
    const { exit, out } = await client.run('crons', 'list', ...REMOTE)
    expect(exit).toBe(0)
    const rows = out.split('\n').map((line) => line.trimEnd().split(/ {2,}/))
    expect(rows.slice(0, 4)).toEqual([
      [`${RELEASE}, in force, declares 2 Crons.`],
      ['NAME', 'ACTIVATION', 'TIMES', 'FUNCTION', 'OVERLAP', 'LAST RUN', 'NEXT RUN'],
      [
        'digest',
        'disabled',
        '0 7 * * * Europe/Rome',
        'mail.send',
        'skip',
        '2027-01-15T08:00:00Z',
        '-',
      ],
      ['sweep', 'enabled', 'every 600 s', 'mail.sweep', 'queue', '-', '2027-01-15T08:10:00Z'],
    ])
    await client.run('crons', 'list', ...REMOTE, '--target', 'channel:staging')
    expect(server.requests.at(-1)!.path).toBe(`${server.base}/crons?target=channel%3Astaging`)
    const one = await client.run('crons', 'list', ...REMOTE, '--target', 'channel:small')
    expect(one.out).toMatch(`${RELEASE} declares 1 Cron.\n`)
  })

  it('enables from the newest revision, and says when the Cron runs next', async () => {
    const { exit, out } = await client.run('crons', 'enable', 'digest', ...REMOTE)
    expect([exit, out]).toEqual([0, 'digest is enabled, next at 2027-01-15T09:00:00Z.\n'])
    const { method, path, body } = server.requests.at(-1)!
    expect([method, path]).toEqual(['PUT', `${server.base}/crons/digest/activation`])
    expect(JSON.parse(body!)).toMatchObject({ expectedRevision: '4', activation: 'enabled' })
  })

  it('names the command that shows the revision where it is stale', async () => {
    const { intercept } = server
    server.intercept = (request) =>
      request.path.endsWith('/activation')
        ? failure('PRODUCT_CAS_CONFLICT', 409)
        : intercept!(request)
    const ran = await client.run('crons', 'disable', 'digest', ...REMOTE, '--expected', '3')
    expect([ran.exit, ran.err]).toEqual([4, expect.stringContaining('`svc crons list`')])
  })

  it('runs a Cron now and names the work', async () => {
    const { exit, out } = await client.run('crons', 'run', 'digest', ...REMOTE)
    expect([exit, out]).toEqual([
      0,
      'digest runs as sch_01MCC5RM00440WAKYHT0DB49BM. ' +
        'See how it ends with `svc scheduled list`.\n',
    ])
  })

  it('rejects what is no name of a Cron before it asks the server', async () => {
    const ran = await client.run('crons', 'run', 'a/b', ...REMOTE)
    expect([ran.exit, server.requests]).toEqual([2, []])
  })
})

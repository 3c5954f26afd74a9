import { beforeEach, expect, test } from 'vitest'
import type { FakeServer } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const REMOTE = ['--remote', '--root', 'root']
const TOKEN = `hkt_${'a'.repeat(43)}`
const MOUNT = {
  name: 'payments',
  path: '/v1/http/payments',
  revision: '3',
  configuration: {
    target: 'channel:production',
    rateLimit: null,
    pathToken: true,
    publicUrl: 'https://api.example.com',
  },
  createdAtMicros: '1800000000000000',
  updatedAtMicros: '1800000000000000',
}
const operation = {
  version: 1,
  operationId: 'opn_01MCC5RM00440WAKYHT0DB49BM',
  kind: 'http_mount.put',
  outcome: 'applied',
  replayed: false,
  revision: '3',
  createdAtMicros: '1800000000000000',
}

let server: FakeServer
let client: TestClient
let token: string | null
/** Bodies of the changes that were sent. */
let sent: unknown[]
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  token = null
  sent = []
  server.intercept = ({ method, path, body }) => {
    if (!path.includes('/http-mounts')) return null
    if (method === 'GET') return { status: 200, body: { version: 1, mounts: [MOUNT] } }
    sent.push(JSON.parse(body!))
    const answer = { version: 1, ...MOUNT, operation }
    return { status: 200, body: method === 'PUT' ? { ...answer, token } : answer }
  }
})

test('the list shows the URLs without their secrets', async () => {
  const { exit, out } = await client.run('http', 'list', ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toContain('https://api.example.com/v1/http/payments/hkt_...')
  expect(out).toContain('channel:production')
})

test.each([
  [null, 'channel:production (serves nothing)'],
  ['rel_01MCC5RM00440WAKYHT0DB49BM', 'channel:production'],
  [undefined, 'channel:production'],
])('the list says of a target whether it serves nothing: %s', async (releaseId, text) => {
  const listed = releaseId === undefined ? MOUNT : { ...MOUNT, releaseId }
  server.intercept = () => ({ status: 200, body: { version: 1, mounts: [listed] } })
  const { out } = await client.run('http', 'list', ...REMOTE)
  const [, row] = out.split('\n').map((line) => line.trimEnd().split(/ {2,}/))
  expect(row?.[1]).toBe(text)
})

test('a new secret is printed once, as part of the URL', async () => {
  token = TOKEN
  const options = ['--target', 'channel:production', '--secret-path', '--rate', '5']
  const { exit, out } = await client.run('http', 'mount', 'payments', ...options, ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toContain(`https://api.example.com/v1/http/payments/${TOKEN}`)
  expect(out).toContain('shown only once')
  expect(sent[0]).toMatchObject({
    configuration: { target: 'channel:production', rateLimit: 5, pathToken: true },
  })
  expect(sent[0]).not.toHaveProperty('configuration.publicUrl')
})

test('options that are given reset what the mount has', async () => {
  const options = ['--rate', 'default', '--open-path', '--public-url', 'none', '--expected', '3']
  const target = ['--target', 'channel:production']
  await client.run('http', 'mount', 'payments', ...target, ...options, ...REMOTE)
  expect(sent[0]).toMatchObject({
    configuration: { rateLimit: null, pathToken: false, publicUrl: null },
    expectedRevision: '3',
  })
})

test('a mount is removed by its name', async () => {
  const { exit, out } = await client.run('http', 'unmount', 'payments', ...REMOTE)
  expect([exit, out.trim()]).toEqual([0, 'payments is no longer mounted.'])
})

test.each([
  ['mount', ['Payments', '--target', 'channel:production']],
  ['mount', ['payments']],
  ['mount', ['payments', '--target', 'production']],
  ['mount', ['payments', '--target', 'channel:a', '--rate', '0']],
  ['mount', ['payments', '--target', 'channel:a', '--rate', '10001']],
  ['mount', ['payments', '--target', 'channel:a', '--secret-path', '--open-path']],
  ['mount', ['payments', '--target', 'channel:a', '--public-url', 'api.example.com']],
  ['unmount', ['']],
])('a wrong command line sends nothing: http %s %j', async (verb, given) => {
  const { exit } = await client.run('http', verb, ...given, ...REMOTE)
  expect([exit, sent]).toEqual([2, []])
})

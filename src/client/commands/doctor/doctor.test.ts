import { beforeEach, expect, test } from 'vitest'
import type { FakeServer } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const doctor = (...more: string[]) => client.run('doctor', '--root', 'root', ...more)

function answer(status: number, body: unknown): void {
  server.intercept = ({ path }) =>
    path.endsWith('/instances/doctor') ? { status, body: body as never } : null
}

function reject(status: number, code: string): void {
  const error = { code, message: 'A message.', retryable: false }
  answer(status, {
    version: 1,
    status: 'error',
    requestId: 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    error,
  })
}

const OK = { name: 'disk-kind', status: 'ok', seen: 'ext4', why: 'Locks.', command: null }
const RED = { name: 'user', status: 'warning', seen: 'root', why: 'Files.', command: 'id' }
const FAILED = { ...RED, name: 'disk-space', status: 'failed' }

test('the exit code is 0 with warnings, and 4 with a failure', async () => {
  answer(200, { version: 1, checks: [OK, RED] })
  const warned = await doctor()
  expect([warned.exit, warned.out]).toEqual([0, expect.stringContaining('Repair: id')])
  const report = { version: 1, checks: [FAILED, OK] }
  answer(200, report)
  const failed = await doctor('--json')
  expect([failed.exit, JSON.parse(failed.out)]).toEqual([4, report])
})

test('a check that only a newer server has is shown', async () => {
  answer(200, { version: 1, checks: [{ ...OK, name: 'backups-age', seen: '1 s' }] })
  expect((await doctor()).out).toContain('backups-age')
})

test('an older server and a development server are named as the reason', async () => {
  reject(404, 'PLATFORM_NOT_FOUND')
  const { exit, err } = await doctor()
  expect(exit).toBe(7)
  expect(err).toContain('This server has no doctor: it is older than this svc, or is `svc dev`.')
  expect(err).toContain('run the new `svc-server doctor` on its machine')
})

test('a server that makes another run says what to do', async () => {
  reject(503, 'PRODUCT_UNAVAILABLE')
  const { exit, err } = await doctor()
  expect(exit).toBe(5)
  expect(err).toContain('Another run may be under way')
})

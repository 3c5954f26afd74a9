/** Tests work that runs while the authorization of its caller is locked. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { authenticateLogin, firstOwner } from '../../testing/operators.ts'
import type { Actor } from './actor.ts'
import { type Login, whileAuthorized } from './sessions.ts'

let t: TestIdentity
let login: Login
let actor: Actor

beforeEach(async () => {
  t = await testIdentity()
  login = await firstOwner(t)
  actor = await authenticateLogin(t, login)
})

afterEach(() => t.dispose())

/**
 * Resolves once another connection waits for a lock that the open transaction of the test holds.
 */
async function untilAnotherWaits(): Promise<void> {
  const waiting = `select count(*)::int as count from pg_locks
                    where not granted and pid <> pg_backend_pid()`
  await expect
    .poll(async () => (await t.sql<{ count: number }>(waiting))[0]?.count)
    .toBeGreaterThan(0)
}

const REVOKE = `update service_operator_sessions
                   set revoked_at_micros = 1, revocation = 'requested'
                 where session_id = $1`

test('work waits for a concurrent revocation, and then does not run', async () => {
  let ran = false
  await t.sql('begin')
  await t.sql(REVOKE, [actor.sessionId])
  const running = rejectionCode(
    whileAuthorized(t.identity, actor, () => {
      ran = true
    }),
  )
  await untilAnotherWaits()
  await t.sql('commit')
  expect(await running).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(ran).toBe(false)
})

test('work waits for a concurrent change of grants, and sees the new ones', async () => {
  await t.sql('begin')
  await t.sql('select 1 from service_operators where operator_id = $1 for no key update', [
    actor.operatorId,
  ])
  const capabilities = ['logs:read']
  await t.sql('update service_operator_grants set capabilities = $1', [capabilities])
  const running = whileAuthorized(t.identity, actor, ({ grants }) => grants)
  await untilAnotherWaits()
  await t.sql('commit')
  expect(await running).toMatchObject([{ capabilities }])
})

test('an error of work is thrown, and the next work may run', async () => {
  const failing = whileAuthorized(t.identity, actor, () => {
    throw new Error('of the work')
  })
  await expect(failing).rejects.toThrow('of the work')
  expect(await whileAuthorized(t.identity, actor, () => 'done')).toBe('done')
})

test('the result of work is returned, once, even if its transaction fails to end', async () => {
  const proxy = await postgresProxy(t.url)
  try {
    const identity = t.another({ url: proxy.url })
    let runs = 0
    proxy.cut(/commit\0/, 'before')
    const result = await whileAuthorized(identity, actor, () => {
      runs += 1
      return 'done'
    })
    expect([result, runs, proxy.cuts]).toEqual(['done', 1, 1])
  } finally {
    await proxy.close()
  }
})

test('no work runs where the database does not answer', async () => {
  const proxy = await postgresProxy(t.url)
  try {
    const identity = t.another({ url: proxy.url })
    let ran = false
    proxy.cut(/for share/, 'after')
    const work = whileAuthorized(identity, actor, () => {
      ran = true
    })
    expect([await rejectionCode(work), ran]).toEqual(['PLATFORM_UNAVAILABLE', false])
  } finally {
    await proxy.close()
  }
})

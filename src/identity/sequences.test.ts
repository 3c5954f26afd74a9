import { afterEach, beforeEach, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { authenticateLogin, operatorWith } from '../../testing/operators.ts'
import { externalLogins } from '../../testing/providers/external-logins.ts'
import { SEED } from '../../testing/seeds.ts'
import { explain, type Model, opened, UNKNOWN_SUBJECT } from '../../testing/sequences/model.ts'
import { raceRefreshAndRevocation, runSequences } from '../../testing/sequences/runs.ts'
import { type Login, refresh } from './sessions.ts'

let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity()
})

afterEach(async () => {
  await t.dispose()
})

const refreshOf = (login: Login, identity = t.identity): Promise<Login> =>
  refresh(identity, { refreshToken: login.refreshToken!.reveal(), requestId: null })

test(`eight concurrent operations are serializable (SVC_SEED=${SEED})`, async () => {
  const external = await externalLogins()
  try {
    await runSequences(external, 20, SEED)
  } finally {
    await external.dispose()
  }
})

test('outcomes that no order explains are rejected', () => {
  const session = opened(0n)
  const wins = { operation: { kind: 'refresh', generation: 1 }, result: 'ok' } as const
  const loses = { ...wins, result: 'PLATFORM_AUTHENTICATION_FAILED' }
  const always = () => true
  expect(explain(session, [wins, wins], 0n, always)).toBeNull()
  expect(explain(session, [loses], 0n, always)).toBeNull()
  // The rejected refresh came second, so the session is revoked.
  expect(explain(session, [loses, wins], 0n, always)).toMatchObject({ state: 'reuse' })
  const live = (end: Model) => end.kind === 'session' && end.state === 'live'
  expect(explain(session, [loses, wins], 0n, live)).toBeNull()
})

test('the later of two concurrent revisions of a source is kept', () => {
  const say = (revision: number, result: string) => {
    const statement = { revision, content: revision }
    return { operation: { kind: 'reconcile', statement } as const, result }
  }
  const local = { ...UNKNOWN_SUBJECT, operator: 'local' } as const
  const lower = say(0, 'applied 2')
  const higher = say(1, 'applied 3')
  const stands = (revision: number) => (end: Model) =>
    end.kind === 'subject' && end.revision === revision
  expect(explain(local, [higher, lower], 0n, stands(1))).not.toBeNull()
  expect(explain(local, [higher, lower], 0n, stands(0))).toBeNull()
  const stale = say(0, 'PLATFORM_MANAGED_SOURCE_STALE')
  expect(explain(local, [stale, say(1, 'applied 2')], 0n, stands(1))).not.toBeNull()
  expect(explain(local, [stale], 0n, () => true)).toBeNull()
})

test('one of 64 concurrent refreshes succeeds, and the session is revoked', {
  tags: ['slow'],
}, async () => {
  const login = await operatorWith(t)
  const servers = [t.identity, t.another()]
  const results = await Promise.allSettled(
    Array.from({ length: 64 }, (_, i) => refreshOf(login, servers[i % 2])),
  )
  const winners = results.filter((result) => result.status === 'fulfilled')
  expect(winners).toHaveLength(1)
  for (const each of [login, winners[0]!.value]) {
    expect(await rejectionCode(authenticateLogin(t, each))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    expect(await rejectionCode(refreshOf(each))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  }
  // The order of their starts does not determine their order.
  const recorded = (await t.audit()).toSorted()
  expect(recorded).toEqual(['session.refresh', 'session.reuse_detected'])
})

test('a consumed token of any generation revokes the session', async () => {
  for (let age = 1; age <= 6; age++) {
    const logins = [await operatorWith(t)]
    for (let i = 0; i < 6; i++) logins.push(await refreshOf(logins.at(-1)!))
    const newest = logins.at(-1)!
    expect(await rejectionCode(authenticateLogin(t, newest))).toBe('none')
    expect(await rejectionCode(refreshOf(logins.at(-1 - age)!))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
    expect(await rejectionCode(authenticateLogin(t, newest))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    expect(await rejectionCode(refreshOf(newest))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  }
})

test('no token is valid once a revocation concurrent with a refresh has returned', {
  tags: ['slow'],
}, async () => {
  await raceRefreshAndRevocation(t, 50)
})

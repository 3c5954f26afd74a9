/** `ctx.auth` in the code of a Workspace. */
import { describe, expect, test } from 'vitest'
import { Driver, errorOf, resultOf } from '../../../../testing/runner-hosts.ts'
import type { FunctionalIdentity } from '../../../value/identities.ts'

const USER: FunctionalIdentity = {
  kind: 'user',
  subject: 'a"\u2028é',
  issuer: 'https://users.test',
  roles: ['admin'],
  email: 'a@b.test',
}
const SERVICE: FunctionalIdentity = { ...USER, kind: 'service' }
const GUEST: FunctionalIdentity = { kind: 'guest', subject: 'gst_1', issuer: 'env_1' }
const driver = new Driver(`
  unseen: query(() => 1, { auth: 'user' }),
  all: query((ctx) => [ctx.auth.identity, ctx.auth.user, ctx.auth.guest, ctx.auth.service],
    { auth: 'optional' }),
  hidden: query((ctx) => ctx.auth.identity),
  spoil: query((ctx) => { ctx.auth.identity.roles.push('root'); return 1 }, { auth: 'user' }),
  forge: query((ctx) => { ctx.auth.identity = { kind: 'user' }; return 1 }, { auth: 'optional' }),
  patch: query((ctx) => {
    Object.defineProperty(Reflect.getPrototypeOf(ctx.auth), 'user', { get: () => 1 })
  }, { auth: 'optional' }),
  enter: mutation((ctx, input) => ctx.auth.issueGuest(input)),
  leave: mutation((ctx) => { ctx.auth.issueGuest({ expiresInSeconds: 60 }) }),
  show: query((ctx) => ctx.auth.issueGuest({ expiresInSeconds: 60 })),`)

function run(name: string, identity: FunctionalIdentity | null) {
  driver.identity = identity
  return driver.run(name)
}
const readIdentity = ({ message }: ReturnType<typeof run>) =>
  message?.type === 'returned' && message.usage.usedIdentity

describe('ctx.auth', () => {
  test.each([
    [USER, [USER, USER, null, null]],
    [GUEST, [GUEST, null, GUEST, null]],
    [SERVICE, [SERVICE, null, null, SERVICE]],
    [null, [null, null, null, null]],
  ])('shows the identity of the caller: %j', (identity, shown) => {
    const call = run('all', identity)
    expect(resultOf(call)).toEqual(shown)
    expect(readIdentity(call)).toBe(true)
  })

  test('records whether the code read it, unless the mode hides every identity', () => {
    expect(readIdentity(run('unseen', USER))).toBe(false)
    const call = run('hidden', null)
    expect([resultOf(call), readIdentity(call)]).toEqual([null, false])
  })

  test('the identity cannot be changed by one call for another', () => {
    expect(resultOf(run('spoil', USER))).toBe(1)
    expect(resultOf(run('all', USER))).toMatchObject([{ roles: ['admin'] }, {}, null, null])
    expect(errorOf(run('forge', USER))).toContain('TypeError')
    expect(errorOf(run('patch', null))).toContain('TypeError')
    expect(resultOf(run('all', null))).toEqual([null, null, null, null])
  })
})

describe('ctx.auth.issueGuest', () => {
  const enter = (input: string) => driver.run('enter', input, () => '"rk_gst_v1_x"', 'mutation')

  test.each([1, 60, 86_400])('requests a bearer token for %d seconds', (seconds) => {
    const call = enter(`{"expiresInSeconds":${seconds}}`)
    expect(resultOf(call)).toBe('rk_gst_v1_x')
    expect(call.seen).toEqual([['issueGuest', seconds]])
  })

  test.each(['{}', '0', '-1', '1.5', '86401', '"60"', 'null', '{"$i":"60"}'])(
    'rejects what is no whole number of seconds: %s',
    (seconds) => {
      const input = seconds === '{}' ? seconds : `{"expiresInSeconds":${seconds}}`
      expect(errorOf(enter(input))).toBe(
        'RangeError: ctx.auth.issueGuest: expiresInSeconds is a whole number from 1 to 86400',
      )
    },
  )

  test('the method throws in a Query an error that names the fix', () => {
    expect(errorOf(driver.run('show'))).toContain('make the Function a mutation or an action')
  })

  test('the promise of the method must be awaited', () => {
    expect(errorOf(driver.run('leave', '{}', () => '"x"', 'mutation'))).toContain('await')
  })
})

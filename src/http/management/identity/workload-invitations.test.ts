/**
 * Invitations that name a workload instead of having a code.
 *
 * @module-tag slow
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROVIDER } from '../../../../testing/providers/identity-providers.ts'
import {
  GITHUB,
  readLogin,
  readRejection,
  UNAUTHENTICATED,
  WORKLOAD_INVITATION,
  type WorkloadLogins,
  workloadLogins,
} from '../../../../testing/providers/workload-logins.ts'

let w: WorkloadLogins

beforeEach(async () => {
  w = await workloadLogins()
})

afterEach(() => w.dispose())

describe('an invitation of a workload', () => {
  it('an invitation has no code, neither at first nor in its replay', async () => {
    const key = w.t.system.ids.make('opn')
    const [first, replay] = [await w.issue(GITHUB, {}, key), await w.issue(GITHUB, {}, key)]
    expect([first.status, replay.status]).toEqual([201, 200])
    const issued = (await first.json()) as object
    expect(issued).toMatchObject({ secretShownOnce: false, replayed: false })
    expect(issued).toMatchObject({ workload: { providerId: 'github' } })
    expect(issued).not.toHaveProperty('code')
    expect(await replay.json()).toEqual({ ...issued, replayed: true })
    const path = `/v1/access/invitation-operations/${key}`
    const looked = await w.t.request('GET', path, { headers: w.asOwner() })
    expect(await looked.json()).toEqual({ ...issued, replayed: true, state: 'pending' })
  })

  it('an invitation cannot be replayed with another workload, or without one', async () => {
    const key = w.t.system.ids.make('opn')
    await w.issue(GITHUB, {}, key)
    const others = [
      { ...GITHUB, subject: 'repo:acme/other:environment:production' },
      { ...GITHUB, providerId: 'gitlab' },
      undefined,
    ]
    for (const workload of others) {
      const response = await w.issue(GITHUB, { workload }, key)
      expect(await readRejection(response)).toBe('409 PLATFORM_INVITATION_OPERATION_REUSED')
    }
  })

  it('an invitation is invalid if no login could consume it', async () => {
    const before = await w.stored()
    const rows: readonly (readonly [string, object])[] = [
      ['an unknown provider', { ...GITHUB, providerId: 'jenkins' }],
      ['the provider of people', { ...GITHUB, providerId: PROVIDER.providerId }],
      ['an empty subject', { ...GITHUB, subject: '' }],
      ['a subject that no token may have', { ...GITHUB, subject: 'x'.repeat(256) }],
      ['a subject with a line end', { ...GITHUB, subject: 'repo:acme/app\n' }],
      ['no subject', { providerId: 'github' }],
      ['an unknown field', { ...GITHUB, issuer: 'https://evil.example' }],
    ]
    for (const [name, workload] of rows) {
      expect(await readRejection(await w.issue(workload)), name).toBe(
        '400 PLATFORM_REQUEST_INVALID',
      )
    }
    expect(await w.stored()).toEqual(before)
  })

  it('takes what its creator may delegate, like any other', async () => {
    await w.invite(GITHUB, { role: 'observer' })
    const observer = await readLogin(await w.logIn('github'), 201)
    const response = await w.t.request('POST', '/v1/access/invitations', {
      body: { ...WORKLOAD_INVITATION, workload: { ...GITHUB, subject: 'another' } },
      headers: { authorization: `Bearer ${observer.accessToken}` },
    })
    expect(await readRejection(response)).toBe('403 PLATFORM_ACCESS_DENIED')
  })

  it('works for 30 minutes', async () => {
    const late = { ...GITHUB, subject: 'repo:acme/late:environment:production' }
    await w.invite()
    await w.invite(late)
    w.t.system.advance(1_799_000)
    await readLogin(await w.logIn('github'), 201)
    w.t.system.advance(1_000)
    const before = await w.stored()
    expect(await readRejection(await w.logIn('github', { sub: late.subject }))).toBe(
      UNAUTHENTICATED,
    )
    expect(await w.stored()).toEqual(before)
  })

  it('a revoked invitation cannot be used', async () => {
    const path = `/v1/access/invitations/${await w.invite()}`
    expect((await w.t.request('DELETE', path, { headers: w.asOwner() })).status).toBe(204)
    expect(await readRejection(await w.logIn('github'))).toBe(UNAUTHENTICATED)
  })

  it('the newest of several invitations applies', async () => {
    await w.invite(GITHUB, { role: 'owner', operatorName: 'by mistake' })
    const path = `/v1/access/invitations/${await w.invite(GITHUB, { role: 'owner' })}`
    expect((await w.t.request('DELETE', path, { headers: w.asOwner() })).status).toBe(204)
    await w.invite(GITHUB, { role: 'observer', operatorName: 'corrected' })
    const first = await readLogin(await w.logIn('github'), 201)
    expect(first.operator.operatorName).toBe('corrected')
    expect((await readLogin(await w.logIn('github'), 200)).operator).toEqual(first.operator)
  })

  it('an invitation of a workload that is linked is a conflict', async () => {
    await w.invite()
    await readLogin(await w.logIn('github'), 201)
    const before = await w.stored()
    expect(await readRejection(await w.issue(GITHUB))).toBe('409 PLATFORM_CONFLICT')
    expect(await w.stored()).toEqual(before)
    await w.invite({ ...GITHUB, subject: 'another' })
  })

  it('links one operator, however many jobs log in first at once', async () => {
    await w.invite()
    await w.invite()
    const statuses = await Promise.all(
      Array.from({ length: 16 }, async () => (await w.logIn('github')).status),
    )
    expect(statuses.toSorted()).toEqual([...Array(15).fill(200), 201])
    expect(await w.t.sql('select 1 from service_operators')).toHaveLength(2)
  })
})

import { afterEach, beforeEach, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  everythingBut,
  firstOwner,
  operatorWith,
  PROJECT,
} from '../../testing/operators.ts'
import { CAPABILITIES, capabilitiesOfRole } from '../value/capabilities.ts'
import { INSTALLATION } from '../value/scope.ts'
import { deriveSession } from './derived-sessions.ts'
import { changeGrant, type GrantChange } from './grant-changes.ts'
import type { Login } from './sessions.ts'

const DENIED = 'PLATFORM_ACCESS_DENIED'
const CONFLICT = 'PLATFORM_CONFLICT'
const HELD = capabilitiesOfRole('developer')
let t: TestIdentity
let owner: Login
let ana: Login

beforeEach(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
  ana = await operatorWith(t, { scope: ENVIRONMENT, capabilities: HELD })
})

afterEach(() => t.dispose())

async function change(given: Partial<GrantChange> = {}, by: Login = owner) {
  const { operatorId } = ana.operator
  const revocation = { scope: ENVIRONMENT, role: null, expectedCapabilities: HELD }
  const input = { operatorId, ...revocation, requestId: null, ...given }
  return changeGrant(t.identity, await authenticateLogin(t, by), input)
}

const rejected = (...given: Parameters<typeof change>) => rejectionCode(change(...given))

const audited = () =>
  t.sql(
    `select operation, actor_operator_id as actor, subject, purpose from service_platform_audit
      where operation like 'grants.%' order by at_micros, audit_id`,
  )

test('a revoked grant has no effect in sessions that are open', async () => {
  expect(await change()).toEqual({ applied: true, grants: [] })
  expect((await authenticateLogin(t, ana)).grants).toEqual([])
  const [actor, subject] = [owner.operator.operatorId, ana.operator.operatorId]
  expect(await audited()).toEqual([{ operation: 'grants.revoke', actor, subject, purpose: null }])
})

test('a change replaces the grant at exactly its scope', async () => {
  const { grants } = await change({ role: 'observer' })
  const observer = { capabilities: capabilitiesOfRole('observer'), source: 'invitation' }
  expect(grants).toEqual([{ scope: ENVIRONMENT, ...observer }])
  await change({ scope: PROJECT, role: 'observer', expectedCapabilities: null })
  expect((await authenticateLogin(t, ana)).grants).toEqual([
    { scope: ENVIRONMENT, ...observer },
    { scope: PROJECT, ...observer },
  ])
  const { grants: left } = await change({ expectedCapabilities: capabilitiesOfRole('observer') })
  expect(left).toEqual([{ scope: PROJECT, ...observer }])
})

test('a repeat changes nothing and leaves no second record', async () => {
  expect((await change({ role: 'observer' })).applied).toBe(true)
  expect((await change({ role: 'observer' })).applied).toBe(false)
  expect(await audited()).toHaveLength(1)
})

test('a grant that is not the expected one stays', async () => {
  await change({ role: 'observer' })
  expect(await rejected()).toBe(CONFLICT)
  expect(await rejected({ expectedCapabilities: null })).toBe(CONFLICT)
  expect((await authenticateLogin(t, ana)).grants).toHaveLength(1)
})

test('the last owner keeps its grant, and can give it up beside another owner', async () => {
  const { operatorId } = owner.operator
  const given = { operatorId, scope: INSTALLATION, expectedCapabilities: CAPABILITIES } as const
  for (const role of [null, 'operator'] as const) {
    expect(await rejected({ ...given, role })).toBe(CONFLICT)
  }
  expect((await authenticateLogin(t, owner)).grants[0]!.source).toBe('bootstrap')
  await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
  expect((await change({ ...given, role: 'operator' })).applied).toBe(true)
  expect(await rejected()).toBe(DENIED)
})

test('nobody gives a capability that it does not hold at the scope', async () => {
  const scope = INSTALLATION
  const manager = await operatorWith(t, { scope, capabilities: ['operators:manage'] })
  expect(await rejected({ role: 'observer' }, manager)).toBe(DENIED)
  const almost = await operatorWith(t, { scope, capabilities: everythingBut('logs:read') })
  expect(await rejected({ role: 'observer' }, almost)).toBe(DENIED)
  expect((await change({}, manager)).applied).toBe(true)
})

test('operators:manage at a Project is not enough, nor is a session without it', async () => {
  const local = await operatorWith(t, { scope: PROJECT, capabilities: CAPABILITIES })
  const other = await operatorWith(t, {
    scope: INSTALLATION,
    capabilities: everythingBut('operators:manage'),
  })
  for (const login of [local, other, ana]) expect(await rejected({}, login)).toBe(DENIED)
})

test('an unknown operator is not found', async () => {
  const operatorId = t.system.ids.make('opr')
  expect(await rejected({ operatorId })).toBe('PLATFORM_NOT_FOUND')
})

test('the record of a derived session names its purpose', async () => {
  const console = await deriveSession(t.identity, await authenticateLogin(t, owner), {
    capabilities: ['operators:manage'],
    scope: INSTALLATION,
    lifetimeSeconds: 60,
    purpose: 'console',
    requestId: null,
  })
  await change({}, console)
  expect(await audited()).toMatchObject([{ operation: 'grants.revoke', purpose: 'console' }])
  expect(await rejected({ role: 'observer', expectedCapabilities: null }, console)).toBe(DENIED)
})

test('two owners that revoke each other at the same time leave one', async () => {
  const other = await operatorWith(t, { scope: INSTALLATION, capabilities: CAPABILITIES })
  const given = { scope: INSTALLATION, expectedCapabilities: CAPABILITIES }
  const codes = await Promise.all([
    rejected({ ...given, operatorId: other.operator.operatorId }, owner),
    rejected({ ...given, operatorId: owner.operator.operatorId }, other),
  ])
  expect(codes.toSorted()).toEqual([DENIED, 'none'])
})

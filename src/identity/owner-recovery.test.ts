import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { authenticateLogin, firstOwner } from '../../testing/operators.ts'
import { Database } from '../database/database.ts'
import { CAPABILITIES } from '../value/capabilities.ts'
import { INSTALLATION } from '../value/scope.ts'
import { Secret } from '../value/secret.ts'
import { openBootstrapFiles } from './bootstrap-files.ts'
import { exchange } from './exchange.ts'
import { issueInvitation, revokeInvitation } from './invitations.ts'
import { recoverOwner } from './owner-recovery.ts'

const LIFETIME_MS = 1_800_000
let t: TestIdentity
let path: string

beforeEach(async () => {
  t = await testIdentity()
  path = join(t.stateDirectory, 'bootstrap', 'owner-recovery.code')
})

afterEach(async () => {
  await t.dispose()
})

const codeInFile = () => readFileSync(path, 'utf8').trimEnd()

const use = (code: string, operatorName: string | null = null) =>
  exchange(t.identity, { code, deviceName: null, operatorName, requestId: null })

test('a recovered owner is a new operator with every capability', async () => {
  const lost = await firstOwner(t)
  expect(await t.identity.recoverOwner()).toBe(path)
  expect(readFileSync(path, 'utf8')).toMatch(/^rk_inv_v1_[\w-]{43}\n$/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(existsSync(`${path}.next`)).toBe(false)
  t.system.advance(LIFETIME_MS - 1)
  const login = await use(codeInFile(), 'Ada again')
  expect(login.operator.operatorName).toBe('Ada again')
  expect(login.operator.operatorId).not.toBe(lost.operator.operatorId)
  expect(login.grants).toMatchObject([{ scope: INSTALLATION, capabilities: CAPABILITIES }])
  expect(await t.audit()).toEqual([
    'bootstrap.create',
    'bootstrap.consume',
    'session.create',
    'owner.recover',
    'bootstrap.consume',
    'session.create',
  ])
  expect(await rejectionCode(use(codeInFile()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('the code is invalid after 30 minutes', async () => {
  await firstOwner(t)
  await t.identity.recoverOwner()
  t.system.advance(LIFETIME_MS)
  expect(await rejectionCode(use(codeInFile()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
})

test('recovery without an operator fails and changes nothing', async () => {
  await t.identity.startup()
  expect(await rejectionCode(t.identity.recoverOwner())).toBe(
    'SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING',
  )
  expect(existsSync(path)).toBe(false)
  expect(await t.audit()).toEqual(['bootstrap.create'])
  await use(readFileSync(t.codePath, 'utf8').trimEnd())
})

test('the bootstrap stays complete beside a pending recovery', async () => {
  await firstOwner(t)
  await t.identity.recoverOwner()
  expect(await rejectionCode(t.identity.recoverBootstrap())).toBe(
    'SERVER_BOOTSTRAP_ALREADY_COMPLETE',
  )
  await use(codeInFile())
})

test('a repeated recovery revokes the previous code, with or without its file', async () => {
  await firstOwner(t)
  await t.identity.recoverOwner()
  const first = codeInFile()
  rmSync(path)
  await t.identity.recoverOwner()
  expect(await rejectionCode(use(first))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  await use(codeInFile())
})

test('a start keeps the file while the code is pending, and removes it afterwards', {
  tags: ['slow'],
}, async () => {
  await firstOwner(t)
  const start = async (): Promise<boolean> => {
    await t.identity.startup()
    return existsSync(path)
  }
  await t.identity.recoverOwner()
  expect(await start()).toBe(true)
  await use(codeInFile())
  expect(await start()).toBe(false)
  await t.identity.recoverOwner()
  t.system.advance(LIFETIME_MS)
  expect(await start()).toBe(false)
  // A lost file does not keep a server from starting.
  await t.identity.recoverOwner()
  rmSync(path)
  expect(await start()).toBe(false)
})

test('another owner can revoke the recovery', async () => {
  const owner = await authenticateLogin(t, await firstOwner(t))
  await t.identity.recoverOwner()
  const [row] = await t.sql<{ invitation_id: string }>(
    `select invitation_id from service_platform_audit where operation = 'owner.recover'`,
  )
  const invitationId = row?.invitation_id as Parameters<typeof revokeInvitation>[2]['invitationId']
  await revokeInvitation(t.identity, owner, { invitationId, requestId: null })
  expect(await rejectionCode(use(codeInFile()))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  await t.identity.startup()
  expect(existsSync(path)).toBe(false)
})

test('a recovery does not make an obsolete first-owner code valid', async () => {
  await t.identity.startup()
  const first = readFileSync(t.codePath, 'utf8').trimEnd()
  await t.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('opr_00000000000000000000000001', 'managed', 1)`,
  )
  expect(await rejectionCode(use(first))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  await t.identity.recoverOwner()
  expect(await rejectionCode(use(first))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  await use(codeInFile())
})

test('a recovery does not change delegated invitations', async () => {
  const owner = await authenticateLogin(t, await firstOwner(t))
  const request = { operatorName: 'ci', role: 'observer' as const, scope: INSTALLATION }
  const input = { ...request, operationId: null, requestId: null }
  const { code } = await issueInvitation(t.identity, owner, input)
  await t.identity.recoverOwner()
  await use(code!.reveal())
  await use(codeInFile())
})

test('a lost connection never leaves a code without its row', { tags: ['slow'] }, async () => {
  await firstOwner(t)
  const proxy = await postgresProxy(t.url)
  const { system, credentials } = t.identity
  const files = openBootstrapFiles(t.stateDirectory, 'owner-recovery')
  const attempt = async (statement: RegExp, when: 'before' | 'after') => {
    const database = new Database({ url: new Secret(proxy.url) })
    proxy.cut(statement, when)
    const code = await rejectionCode(recoverOwner({ database, system, credentials }, files))
    await database.close()
    return code
  }
  try {
    for (const when of ['before', 'after'] as const) {
      expect(await attempt(/insert into service_platform_audit/, when)).toBe('PLATFORM_UNAVAILABLE')
      expect(await attempt(/^Q.{4}commit\0/s, when)).toBe('SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN')
      await t.identity.recoverOwner()
      await use(codeInFile())
    }
    // The commit was stored and its confirmation lost: a start writes the file.
    await attempt(/^Q.{4}commit\0/s, 'after')
    await t.identity.startup()
    await use(codeInFile())
  } finally {
    await proxy.close()
  }
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TEST_PEPPER, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { PROVIDER, providerFile } from '../../testing/providers/identity-providers.ts'
import { SCHEMA_VERSION } from '../database/migrate.ts'
import { exchange } from '../identity/exchange.ts'
import { realSystem } from '../system/system.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import { Secret } from '../value/secret.ts'
import { runServer } from './modes.ts'

let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity({ empty: true })
})

afterEach(async () => {
  await t.dispose()
})

async function run(mode: string, more: Record<string, string> = {}) {
  let out = ''
  let err = ''
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    errIsTerminal: false,
  }
  const environment = {
    SERVICE_IDENTITY_DATABASE_URL: t.url,
    SERVICE_PLATFORM_IDENTITY_PEPPER: TEST_PEPPER.reveal(),
    SERVICE_STATE_DIRECTORY: t.stateDirectory,
    ...more,
  }
  const exit = await runServer([mode], environment, io)
  return { exit, out, err }
}

const CONFIRMED = { SERVICE_BOOTSTRAP_RECOVERY_CONFIRM: 'replace-lost-initial-owner-code' }

test('migrate reports what it did, or that the schema is current', { tags: ['slow'] }, async () => {
  expect(await run('migrate')).toEqual({
    exit: 0,
    out: `The identity database went from schema version 0 to ${SCHEMA_VERSION}.\n`,
    err: '',
  })
  expect((await run('migrate')).out).toBe(
    `The identity database is at schema version ${SCHEMA_VERSION} already.\n`,
  )
})

test('migrate creates no first-owner code', { tags: ['slow'] }, async () => {
  await run('migrate')
  expect(await t.sql('select 1 from service_operator_invitations')).toEqual([])
})

test('recovery needs the exact phrase and does nothing without it', async () => {
  for (const phrase of [{}, { SERVICE_BOOTSTRAP_RECOVERY_CONFIRM: 'yes' }]) {
    const { exit, out, err } = await run('recover-bootstrap', phrase)
    expect([exit, out]).toEqual([1, ''])
    expect(err).toContain('SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID')
  }
  expect(await t.sql(`select to_regclass('service_operators') as found`)).toEqual([{ found: null }])
})

test('recovery prints the file, not the code, and fails once there is an owner', {
  tags: ['slow'],
}, async () => {
  const { exit, out } = await run('recover-bootstrap', CONFIRMED)
  expect(exit).toBe(0)
  expect(out).toContain(t.codePath)
  const code = readFileSync(t.codePath, 'utf8').trimEnd()
  expect(out).not.toContain(code.slice(10))
  // The mode used the real clock, so the exchange uses it too.
  const { database, credentials } = t.identity
  const names = { deviceName: null, operatorName: null }
  const core = { database, credentials, system: realSystem() }
  await exchange(core, { code, ...names, requestId: null })
  const again = await run('recover-bootstrap', CONFIRMED)
  expect(again.exit).toBe(1)
  expect(again.err).toContain('SERVER_BOOTSTRAP_ALREADY_COMPLETE')
})

const OTHER_PEPPER = {
  SERVICE_PLATFORM_IDENTITY_PEPPER: encodeBase64Url(new Uint8Array(32).fill(8)),
}
const PHRASE = 'void-every-session-and-invitation'

test.each([
  ['migrate', {}],
  ['recover-bootstrap', CONFIRMED],
  ['recover-owner', { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }],
  // Only migrate reads the confirmation; an operator may have left it in the settings.
  ['recover-bootstrap', { ...CONFIRMED, SERVICE_PEPPER_CHANGE_CONFIRM: PHRASE }],
])(
  '%s fails with another pepper and names what to restore',
  { tags: ['slow'] },
  async (mode, more) => {
    await run('migrate')
    const { exit, out, err } = await run(mode, { ...OTHER_PEPPER, ...more })
    expect([exit, out]).toEqual([78, ''])
    expect(err).toMatch(/^svc-server: SERVER_IDENTITY_PEPPER_MISMATCH: .*\n$/)
    expect(err).toContain('Restore the pepper that belongs to this database')
    expect(err).toContain(`SERVICE_PEPPER_CHANGE_CONFIRM=${PHRASE}`)
    expect(err).not.toContain(OTHER_PEPPER.SERVICE_PLATFORM_IDENTITY_PEPPER)
  },
)

test('migrate accepts another pepper only with the exact phrase', { tags: ['slow'] }, async () => {
  await run('migrate')
  for (const phrase of ['', 'yes', `${PHRASE} `, 'void-every-identity-link']) {
    const given = { ...OTHER_PEPPER, SERVICE_PEPPER_CHANGE_CONFIRM: phrase }
    const { exit, err } = await run('migrate', given)
    expect(exit).toBe(78)
    expect(err).toContain('SERVER_CONFIGURATION_INVALID: SERVICE_PEPPER_CHANGE_CONFIRM: ')
  }
  const wrong = {
    ...OTHER_PEPPER,
    SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM: 'void-every-identity-link',
  }
  expect((await run('migrate', wrong)).err).toContain('SERVER_IDENTITY_PEPPER_MISMATCH')
  const given = { ...OTHER_PEPPER, SERVICE_PEPPER_CHANGE_CONFIRM: PHRASE }
  const { exit, out } = await run('migrate', given)
  expect(exit).toBe(0)
  expect(out).toContain('every session and every pending invitation is revoked')
  expect(await run('migrate', given)).toEqual({
    exit: 0,
    out: `The identity database is at schema version ${SCHEMA_VERSION} already.\n`,
    err: '',
  })
  expect((await run('migrate')).err).toContain('SERVER_IDENTITY_PEPPER_MISMATCH')
})

test('migrate fails with another subject pepper until its change is confirmed', {
  tags: ['slow'],
}, async () => {
  const path = join(t.stateDirectory, 'oidc.json')
  const oidc = (fill: number) => {
    const subjectPepper = new Secret(encodeBase64Url(new Uint8Array(32).fill(fill)))
    const content = JSON.stringify(providerFile({ ...PROVIDER, subjectPepper }))
    writeFileSync(path, content, { mode: 0o600 })
    return { SERVICE_PLATFORM_OIDC_CONFIG: path }
  }
  expect((await run('migrate', oidc(9))).exit).toBe(0)
  const { exit, err } = await run('migrate', oidc(10))
  expect(exit).toBe(78)
  expect(err).toMatch(/^svc-server: SERVER_OIDC_PEPPER_MISMATCH: /)
  const confirmed = { SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM: 'void-every-identity-link' }
  const { out } = await run('migrate', { ...oidc(10), ...confirmed })
  expect(out).toContain('no identity link of this provider is resolved from now on')
  expect((await run('migrate', oidc(10))).exit).toBe(0)
})

test('a database that cannot be reached is named without its password', async () => {
  const { exit, err } = await run('migrate', {
    SERVICE_IDENTITY_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x',
  })
  expect(exit).toBe(1)
  expect(err).toContain('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(err).not.toContain('hunter2')
})

test('owner recovery needs its phrase and an operator, and prints the file', async () => {
  const phrase = { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }
  const unconfirmed = await run('recover-owner', CONFIRMED)
  expect([unconfirmed.exit, unconfirmed.out]).toEqual([1, ''])
  expect(unconfirmed.err).toContain('SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID')
  const early = await run('recover-owner', phrase)
  expect([early.exit, early.out]).toEqual([1, ''])
  expect(early.err).toContain('SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING')
  await t.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('opr_00000000000000000000000001', 'lost', 1)`,
  )
  const { exit, out } = await run('recover-owner', phrase)
  expect(exit).toBe(0)
  const path = `${t.stateDirectory}/bootstrap/owner-recovery.code`
  expect(out).toContain(path)
  expect(out).not.toContain(readFileSync(path, 'utf8').trimEnd().slice(10))
})

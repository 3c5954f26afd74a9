import { existsSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  rejectionCode,
  TEST_PEPPER,
  type TestIdentity,
  testIdentity,
} from '../../testing/identity.ts'
import { lossInjector } from '../../testing/losses/loss-injector.ts'
import { authenticateLogin, firstOwner } from '../../testing/operators.ts'
import { PROVIDER, SUBJECT_PEPPER } from '../../testing/providers/identity-providers.ts'
import { IDENTITY_SCHEMA, migrate, SCHEMA_VERSION } from '../database/migrate.ts'
import { MIGRATIONS } from '../database/migrations.generated.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import { Secret } from '../value/secret.ts'
import type { IdentityCore } from './core.ts'
import { exchange } from './exchange.ts'
import type { Identity } from './identity.ts'
import { issueInvitation } from './invitations.ts'
import { configuredPeppers, recordPeppers } from './pepper-checks.ts'
import type { Login } from './sessions.ts'

const OTHER_PEPPER = new Secret(encodeBase64Url(new Uint8Array(32).fill(8)))
const MISMATCH = 'SERVER_IDENTITY_PEPPER_MISMATCH'
const SUBJECT_MISMATCH = 'SERVER_OIDC_PEPPER_MISMATCH'
let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity()
})

afterEach(() => t.dispose())

/** Every row that a start or a recovery could change. */
async function stored(): Promise<unknown> {
  const tables = ['pepper_checks', 'migrations', 'meta', 'audit'].map((name) => `platform_${name}`)
  const all = [...tables, 'operator_invitations', 'operator_sessions', 'operators']
  const rows = []
  for (const table of all) rows.push(await t.sql(`select * from service_${table} order by 1`))
  return rows
}

const checks = () =>
  t.sql<{ pepper: string; check_digest: Buffer }>(
    'select pepper, check_digest from service_platform_pepper_checks order by pepper',
  )

const isLoggedIn = async (login: Login) =>
  (await rejectionCode(authenticateLogin(t, login))) === 'none'

describe('a wrong identity pepper', () => {
  const attempts: readonly (readonly [string, (identity: Identity) => Promise<unknown>])[] = [
    ['a start', (identity) => identity.startup()],
    ['a migration', (identity) => identity.migrate()],
    ['a bootstrap recovery', (identity) => identity.recoverBootstrap()],
    ['an owner recovery', (identity) => identity.recoverOwner()],
    ['a change of the subject pepper', (identity) => identity.migrate(['oidc-subject'])],
  ]
  test.each(attempts)(
    'a wrong pepper makes %s fail and changes nothing',
    { tags: ['slow'] },
    async (_, attempt) => {
      const owner = await firstOwner(t)
      const before = await stored()
      expect(await rejectionCode(attempt(t.another({ pepper: OTHER_PEPPER })))).toBe(MISMATCH)
      expect(await stored()).toEqual(before)
      expect(await t.identity.startup()).toBe('complete')
      expect(await isLoggedIn(owner)).toBe(true)
    },
  )

  test('a wrong identity pepper is reported before the schema is migrated', async () => {
    await t.identity.startup()
    // Simulates a database of the previous version.
    await t.sql('delete from service_platform_migrations where version = $1', [SCHEMA_VERSION])
    await t.sql('update service_platform_meta set schema_version = schema_version - 1')
    expect(await rejectionCode(t.another({ pepper: OTHER_PEPPER }).migrate())).toBe(MISMATCH)
  })

  test('a wrong identity pepper is reported even if the first-owner code is unused', async () => {
    await t.identity.startup()
    const code = readFileSync(t.codePath, 'utf8')
    expect(await rejectionCode(t.another({ pepper: OTHER_PEPPER }).startup())).toBe(MISMATCH)
    expect(readFileSync(t.codePath, 'utf8')).toBe(code)
  })
})

describe('the first pepper', () => {
  test('the first pepper of an empty database is recorded once', { tags: ['slow'] }, async () => {
    const empty = await testIdentity({ empty: true })
    try {
      await empty.identity.startup()
      const rows = await empty.sql('select * from service_platform_pepper_checks')
      expect(rows).toMatchObject([
        { pepper: 'identity', recorded_at_micros: String(empty.system.nowMicros()) },
      ])
      empty.system.advance(1)
      await empty.identity.startup()
      expect(await empty.sql('select * from service_platform_pepper_checks')).toEqual(rows)
      expect(await rejectionCode(empty.another({ pepper: OTHER_PEPPER }).startup())).toBe(MISMATCH)
    } finally {
      await empty.dispose()
    }
  })

  test('the pepper of a database without checks is recorded at the next start', {
    tags: ['slow'],
  }, async () => {
    const old = await testIdentity({ empty: true })
    try {
      const schema = { ...IDENTITY_SCHEMA, migrations: MIGRATIONS.slice(0, 3) }
      await migrate(old.identity.database, 1n, schema)
      await old.sql(
        `insert into service_operators (operator_id, operator_name, created_at_micros)
         values ('opr_00000000000000000000000001', 'old', 1)`,
      )
      expect(await old.identity.startup()).toBe('complete')
      expect(await rejectionCode(old.another({ pepper: OTHER_PEPPER }).startup())).toBe(MISMATCH)
      expect(await old.identity.startup()).toBe('complete')
    } finally {
      await old.dispose()
    }
  })

  test('the first pepper is recorded once, even if many servers start at once', {
    tags: ['slow'],
  }, async () => {
    const empty = await testIdentity({ empty: true })
    try {
      const peppers = [TEST_PEPPER, OTHER_PEPPER]
      const servers = Array.from({ length: 8 }, (_, i) =>
        empty.another({ pepper: peppers[i % 2]! }),
      )
      const codes = await Promise.all(servers.map((server) => rejectionCode(server.startup())))
      const winner = codes.indexOf('none') % 2
      expect(codes).toEqual(servers.map((_, i) => (i % 2 === winner ? 'none' : MISMATCH)))
      const recorded = await empty.sql('select check_digest from service_platform_pepper_checks')
      const [expected] = configuredPeppers(peppers[winner]!, [])
      expect(recorded).toEqual([{ check_digest: expected!.digest }])
    } finally {
      await empty.dispose()
    }
  })

  test('the first pepper is not in its check, nor is it any other digest', async () => {
    await t.identity.startup()
    const [check] = await checks()
    const pepper = Buffer.from(TEST_PEPPER.reveal(), 'base64url')
    expect(check!.check_digest.equals(pepper)).toBe(false)
    const [other] = configuredPeppers(OTHER_PEPPER, [])
    expect(check!.check_digest.equals(other!.digest)).toBe(false)
  })
})

describe('a confirmed change of the identity pepper', () => {
  test('a confirmed change revokes every session and pending invitation, with audit', {
    tags: ['slow'],
  }, async () => {
    const owner = await firstOwner(t)
    const actor = await authenticateLogin(t, owner)
    const invitation = {
      operatorName: 'b',
      role: 'observer',
      scope: actor.grants[0]!.scope,
    } as const
    const issued = await issueInvitation(t.identity, actor, {
      ...invitation,
      operationId: null,
      requestId: null,
    })
    const changed = t.another({ pepper: OTHER_PEPPER })
    const migration = await changed.migrate(['identity'])
    expect(migration).toEqual({
      from: SCHEMA_VERSION,
      to: SCHEMA_VERSION,
      replacedPeppers: ['identity'],
    })
    expect(await t.audit()).toContain('pepper.change')
    expect(
      await t.sql(`select 1 from service_operator_invitations where state = 'pending'`),
    ).toEqual([])
    expect(await rejectionCode(t.identity.startup())).toBe(MISMATCH)
    // The old pepper does not restore them.
    expect((await t.identity.migrate(['identity'])).replacedPeppers).toEqual(['identity'])
    expect(await isLoggedIn(owner)).toBe(false)
    const code = issued.code?.reveal() ?? ''
    const plain = { deviceName: null, operatorName: null, requestId: null }
    expect(await rejectionCode(exchange(t.identity, { ...plain, code }))).toBe(
      'PLATFORM_AUTHENTICATION_FAILED',
    )
  })

  test('a confirmed change leaves a working owner recovery', async () => {
    await firstOwner(t)
    const changed = t.another({ pepper: OTHER_PEPPER })
    await changed.migrate(['identity'])
    expect(await changed.startup()).toBe('complete')
    const code = readFileSync(await changed.recoverOwner(), 'utf8').trimEnd()
    const plain = { deviceName: null, operatorName: null, requestId: null }
    expect(await rejectionCode(exchange(changed, { ...plain, code }))).toBe('none')
  })

  test('a confirmed change replaces a first-owner code that is unused', async () => {
    await t.identity.startup()
    const old = readFileSync(t.codePath, 'utf8')
    const changed = t.another({ pepper: OTHER_PEPPER })
    await changed.migrate(['identity'])
    expect(await changed.startup()).toBe('created')
    expect(readFileSync(t.codePath, 'utf8')).not.toBe(old)
    expect(existsSync(`${t.codePath}.next`)).toBe(false)
  })

  test('a confirmed change does not confirm other peppers', async () => {
    await t.identity.startup()
    const before = await stored()
    const peppers = configuredPeppers(OTHER_PEPPER, [PROVIDER])
    expect(await rejectionCode(recordPeppers(t.identity, peppers, ['oidc-subject']))).toBe(MISMATCH)
    expect(await stored()).toEqual(before)
  })

  test('a confirmed change to the recorded pepper changes nothing', async () => {
    const owner = await firstOwner(t)
    const before = await stored()
    expect((await t.identity.migrate(['identity'])).replacedPeppers).toEqual([])
    expect(await stored()).toEqual(before)
    expect(await isLoggedIn(owner)).toBe(true)
  })

  test('a confirmed change that lost its connection is completed by the next run', {
    tags: ['slow'],
  }, async () => {
    await t.identity.startup()
    const [old] = await checks()
    const [next] = configuredPeppers(OTHER_PEPPER, [])
    const change = (core: IdentityCore) => recordPeppers(core, [next!], ['identity'])
    const restore = () =>
      t.sql('update service_platform_pepper_checks set check_digest = $1', [old!.check_digest])
    const injector = await lossInjector(t)
    try {
      for (const loss of await injector.lossesOf(change)) {
        await restore()
        await t.sql('delete from service_platform_audit')
        const code = await injector.inject(change, loss)
        const uncertain = loss.last ? ['PLATFORM_IDENTITY_RESULT_UNCERTAIN'] : []
        expect(['PLATFORM_UNAVAILABLE', ...uncertain], loss.where).toContain(code)
        await change(t.identity)
        expect((await checks())[0]!.check_digest, loss.where).toEqual(next!.digest)
        expect(await t.audit(), loss.where).toEqual(['pepper.change'])
      }
    } finally {
      await injector.close()
    }
  })
})

describe('the subject pepper of a provider', () => {
  const external = { oidc: PROVIDER }
  const changed = { oidc: { ...PROVIDER, subjectPepper: OTHER_PEPPER } }

  beforeEach(async () => {
    await t.another({ external }).startup()
    expect((await checks()).map(({ pepper }) => pepper)).toEqual([
      'identity',
      `oidc-subject:${PROVIDER.providerId}`,
    ])
  })

  test('a different subject pepper makes the start fail with its code', async () => {
    const before = await stored()
    expect(await rejectionCode(t.another({ external: changed }).startup())).toBe(SUBJECT_MISMATCH)
    expect(await rejectionCode(t.another({ external: changed }).migrate(['identity']))).toBe(
      SUBJECT_MISMATCH,
    )
    expect(await stored()).toEqual(before)
    expect(await rejectionCode(t.another({ external }).startup())).toBe('none')
  })

  test('the subject pepper of a provider is checked for each provider ID', async () => {
    const oidc = { ...changed.oidc, providerId: 'another-idp' }
    expect(await rejectionCode(t.another({ external: { oidc } }).startup())).toBe('none')
    expect(await rejectionCode(t.another({ external }).startup())).toBe('none')
  })

  test('a server without a provider checks no subject pepper', async () => {
    expect(await rejectionCode(t.identity.startup())).toBe('none')
  })

  test('a confirmed change of a subject pepper keeps sessions, and is in the audit', {
    tags: ['slow'],
  }, async () => {
    const owner = await firstOwner(t)
    const migration = await t.another({ external: changed }).migrate(['oidc-subject'])
    expect(migration.replacedPeppers).toEqual(['oidc-subject'])
    expect(await t.audit()).toContain('pepper.change')
    expect(await isLoggedIn(owner)).toBe(true)
    expect(await rejectionCode(t.another({ external: changed }).startup())).toBe('none')
    expect(await rejectionCode(t.another({ external }).startup())).toBe(SUBJECT_MISMATCH)
  })

  test('equal bytes have different checks as subject pepper and as identity pepper', async () => {
    const [identity, subject] = configuredPeppers(SUBJECT_PEPPER, [PROVIDER])
    expect(Buffer.from(identity!.digest).equals(subject!.digest)).toBe(false)
  })
})

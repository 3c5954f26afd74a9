import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { postgresProxy } from '../../testing/databases/postgres-proxy.ts'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { Database } from '../database/database.ts'
import { Fault } from '../errors/fault.ts'
import { Secret } from '../value/secret.ts'
import { ensureBootstrap, recoverBootstrap } from './bootstrap.ts'
import { type BootstrapFiles, openBootstrapFiles } from './bootstrap-files.ts'
import { exchange } from './exchange.ts'
import type { Login } from './sessions.ts'

const DAY_MS = 86_400_000
let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity()
})

afterEach(async () => {
  await t.dispose()
})

const codeInFile = (path = t.codePath): string => readFileSync(path, 'utf8').trimEnd()

function login(code: string): Promise<Login> {
  return exchange(t.identity, { code, deviceName: null, operatorName: null, requestId: null })
}

const bootstraps = () =>
  t.sql<{ state: string }>(
    'select state from service_operator_invitations order by created_at_micros, invitation_id',
  )

test('the first start writes one code to a private file', async () => {
  expect(await t.identity.startup()).toBe('created')
  expect(readFileSync(t.codePath, 'utf8')).toMatch(/^rk_inv_v1_[\w-]{43}\n$/)
  expect(statSync(t.codePath).mode & 0o777).toBe(0o600)
  expect(statSync(join(t.stateDirectory, 'bootstrap')).mode & 0o777).toBe(0o700)
  expect(existsSync(`${t.codePath}.next`)).toBe(false)
  expect(await t.audit()).toEqual(['bootstrap.create'])
  expect(await bootstraps()).toEqual([{ state: 'pending' }])
})

test('an empty database is migrated by the first start', async () => {
  const empty = await testIdentity({ empty: true })
  try {
    expect(await empty.identity.startup()).toBe('created')
    expect(await empty.identity.ready()).toBe(true)
  } finally {
    await empty.dispose()
  }
})

test('a restart with the file present generates no second code', async () => {
  await t.identity.startup()
  const code = codeInFile()
  t.system.advance(DAY_MS - 1)
  expect(await t.identity.startup()).toBe('pending')
  expect(codeInFile()).toBe(code)
  expect(await t.audit()).toEqual(['bootstrap.create'])
  expect((await login(code)).operator.operatorName).toBe('owner')
})

test('a restart without the file fails with its code and changes nothing', async () => {
  await t.identity.startup()
  rmSync(t.codePath)
  expect(await rejectionCode(t.identity.startup())).toBe('SERVER_BOOTSTRAP_FILE_MISSING')
  expect(await bootstraps()).toEqual([{ state: 'pending' }])
  expect(existsSync(t.codePath)).toBe(false)
})

test('a file that holds another code counts as missing', async () => {
  await t.identity.startup()
  writeFileSync(t.codePath, `rk_inv_v1_${'A'.repeat(43)}\n`)
  expect(await rejectionCode(t.identity.startup())).toBe('SERVER_BOOTSTRAP_FILE_MISSING')
})

test('a state directory of another database counts as missing', async () => {
  await t.identity.startup()
  const stateDirectory = join(t.stateDirectory, 'another')
  const other = t.another({ stateDirectory })
  expect(await rejectionCode(other.startup())).toBe('SERVER_BOOTSTRAP_FILE_MISSING')
})

test('a code that is pending for 24 hours is revoked and renewed in one transaction', {
  tags: ['slow'],
}, async () => {
  await t.identity.startup()
  const old = codeInFile()
  t.system.advance(DAY_MS)
  expect(await t.identity.startup()).toBe('renewed')
  expect(codeInFile()).not.toBe(old)
  expect(await t.audit()).toEqual(['bootstrap.create', 'bootstrap.expire', 'bootstrap.create'])
  expect(await bootstraps()).toEqual([{ state: 'revoked' }, { state: 'pending' }])
  expect(await rejectionCode(login(old))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  await login(codeInFile())
})

test('a code that is pending for 24 hours is renewed even if its file is missing', async () => {
  await t.identity.startup()
  rmSync(t.codePath)
  t.system.advance(DAY_MS)
  expect(await t.identity.startup()).toBe('renewed')
  await login(codeInFile())
})

test('the file is removed by the next start after completion', async () => {
  await t.identity.startup()
  await login(codeInFile())
  expect(existsSync(t.codePath)).toBe(true)
  expect(await t.identity.startup()).toBe('complete')
  expect(existsSync(t.codePath)).toBe(false)
  expect(await t.identity.startup()).toBe('complete')
})

test('servers that start at once end with one code that works', { tags: ['slow'] }, async () => {
  const servers = [t.identity, ...Array.from({ length: 5 }, () => t.another())]
  const outcomes = await Promise.all(servers.map((server) => server.startup()))
  expect(outcomes.sort()).toEqual(['created', ...Array(5).fill('pending')])
  expect(await t.audit()).toEqual(['bootstrap.create'])
  await login(codeInFile())
})

test('an unsafe state directory is rejected before anything is written', async () => {
  chmodSync(t.stateDirectory, 0o777)
  expect(await rejectionCode(t.identity.startup())).toBe('SERVER_STATE_DIRECTORY_INVALID')
  expect(await bootstraps()).toEqual([])
})

test('recovery revokes the pending code and leaves one new code', async () => {
  await t.identity.startup()
  const lost = codeInFile()
  rmSync(t.codePath)
  expect(await t.identity.recoverBootstrap()).toBe(t.codePath)
  expect(await bootstraps()).toEqual([{ state: 'revoked' }, { state: 'pending' }])
  expect(await t.audit()).toEqual(['bootstrap.create', 'bootstrap.recover'])
  expect(await rejectionCode(login(lost))).toBe('PLATFORM_AUTHENTICATION_FAILED')
  expect(await t.identity.startup()).toBe('pending')
  await login(codeInFile())
})

test('recovery works on a database that no server has used yet', async () => {
  await t.identity.recoverBootstrap()
  await login(codeInFile())
})

test('recovery fails once an operator exists', async () => {
  await t.identity.startup()
  await login(codeInFile())
  expect(await rejectionCode(t.identity.recoverBootstrap())).toBe(
    'SERVER_BOOTSTRAP_ALREADY_COMPLETE',
  )
  expect(await bootstraps()).toEqual([{ state: 'consumed' }])
  expect(await t.audit()).not.toContain('bootstrap.recover')
})

test('exactly one of a concurrent recovery and exchange succeeds', { tags: ['slow'] }, async () => {
  for (let round = 0; round < 8; round++) {
    const fresh = await testIdentity()
    try {
      await fresh.identity.startup()
      const code = codeInFile(fresh.codePath)
      const other = fresh.another()
      const [exchanged, recovered] = await Promise.all([
        rejectionCode(
          exchange(other, { code, deviceName: null, operatorName: null, requestId: null }),
        ),
        rejectionCode(fresh.identity.recoverBootstrap()),
      ])
      const operators = await fresh.sql('select 1 from service_operators')
      const pending = await fresh.sql(
        `select 1 from service_operator_invitations where state = 'pending'`,
      )
      const outcome = [exchanged, recovered, operators.length, pending.length]
      expect([
        ['none', 'SERVER_BOOTSTRAP_ALREADY_COMPLETE', 1, 0],
        ['PLATFORM_AUTHENTICATION_FAILED', 'none', 0, 1],
      ]).toContainEqual(outcome)
    } finally {
      await fresh.dispose()
    }
  }
})

/** Files of the state directory that fail at the nth use, as if the process crashed there. */
function failingAt(nth: number): BootstrapFiles & { readonly uses: number } {
  const files = openBootstrapFiles(t.stateDirectory)
  let uses = 0
  const step = <A extends unknown[], R>(work: (...input: A) => R) => {
    return (...input: A): R => {
      if (++uses === nth) throw new Fault('SERVER_STATE_DIRECTORY_INVALID', { detail: 'crash' })
      return work(...input)
    }
  }
  return {
    path: files.path,
    prepare: step(files.prepare),
    read: step(files.read),
    write: step(files.write),
    remove: step(files.remove),
    get uses() {
      return uses
    },
  }
}

test('after a crash at any file operation the next start ends with one usable code', {
  tags: ['slow'],
}, async () => {
  for (let nth = 1; ; nth++) {
    const files = failingAt(nth)
    const crashed = await rejectionCode(ensureBootstrap(t.identity, files))
    if (crashed === 'none') {
      expect(nth).toBeGreaterThan(5)
      break
    }
    await t.identity.startup()
    const pending = await t.sql(
      `select 1 from service_operator_invitations where state = 'pending'`,
    )
    expect(pending).toHaveLength(1)
    await login(codeInFile())
    await t.dispose()
    t = await testIdentity()
  }
})

test('after a crash of a recovery at any file operation a rerun ends with one code', {
  tags: ['slow'],
}, async () => {
  for (let nth = 1; ; nth++) {
    await t.identity.startup()
    const crashed = await rejectionCode(recoverBootstrap(t.identity, failingAt(nth)))
    if (crashed === 'none') break
    const before = codeInFile()
    // A server that starts meanwhile has the old code, or finds the new one.
    expect(await t.identity.startup()).toBe('pending')
    const survived = crashed === 'SERVER_STATE_DIRECTORY_INVALID'
    if (survived) expect(codeInFile()).toBe(before)
    await t.identity.recoverBootstrap()
    await login(codeInFile())
    await t.dispose()
    t = await testIdentity()
  }
})

test('a connection that is lost at any statement leaves one code or none, never two', {
  tags: ['slow'],
}, async () => {
  const proxy = await postgresProxy(t.url)
  try {
    const statements = [
      /pg_advisory_xact_lock/,
      /insert into service_operator_invitations/,
      /insert into service_platform_audit/,
      /^Q.{4}commit\0/s,
    ]
    for (const statement of statements) {
      for (const when of ['before', 'after'] as const) {
        const database = new Database({ url: new Secret(proxy.url) })
        const { system, credentials } = t.identity
        proxy.cut(statement, when)
        const files = openBootstrapFiles(t.stateDirectory)
        await rejectionCode(ensureBootstrap({ database, system, credentials }, files))
        await database.close()
        await t.identity.startup()
        const rows = await t.sql(
          `select 1 from service_operator_invitations where state = 'pending'`,
        )
        expect(rows).toHaveLength(1)
        await login(codeInFile())
        await t.sql(`truncate service_operator_invitations, service_operators,
          service_operator_grants, service_operator_sessions, service_platform_audit cascade`)
        rmSync(join(t.stateDirectory, 'bootstrap'), { recursive: true })
      }
    }
    expect(proxy.cuts).toBe(8)
  } finally {
    await proxy.close()
  }
})

test('a recovery with a lost confirmation is uncertain, and a rerun resolves it', {
  tags: ['slow'],
}, async () => {
  const proxy = await postgresProxy(t.url)
  const database = new Database({ url: new Secret(proxy.url) })
  try {
    await t.identity.startup()
    for (const when of ['before', 'after'] as const) {
      proxy.cut(/^Q.{4}commit\0/s, when)
      const { system, credentials } = t.identity
      const files = openBootstrapFiles(t.stateDirectory)
      expect(await rejectionCode(recoverBootstrap({ database, system, credentials }, files))).toBe(
        'SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN',
      )
      await t.identity.recoverBootstrap()
    }
    await login(codeInFile())
  } finally {
    await database.close()
    await proxy.close()
  }
})

test('the code is neither in the database nor in the log', async () => {
  await t.identity.startup()
  const code = codeInFile()
  const rows = await t.sql('select row_to_json(i) from service_operator_invitations i')
  expect(JSON.stringify(rows)).not.toContain(code.slice(10, 30))
  expect(t.log.text()).not.toContain(code.slice(10, 30))
})

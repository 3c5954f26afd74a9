import { afterEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { CODES } from '../errors/codes.ts'
import { Fault } from '../errors/fault.ts'
import type { Migration } from '../value/databases/migrations.ts'
import { Secret } from '../value/secret.ts'
import { Database } from './database.ts'
import {
  IDENTITY_SCHEMA,
  migrate,
  readMigrated,
  SCHEMA_VERSION,
  unsupportedReason,
} from './migrate.ts'
import { MIGRATIONS } from './migrations.generated.ts'

const AT = 1_700_000_000_000_000n
const withMigrations = (migrations: readonly Migration[]) => ({ ...IDENTITY_SCHEMA, migrations })
const opened: { database: Database; base: TestDatabase }[] = []

afterEach(async () => {
  for (const { database, base } of opened.splice(0)) {
    await database.close()
    await base.drop()
  }
})

async function empty(): Promise<{ database: Database; url: string }> {
  const base = await freshDatabase()
  const database = new Database({ url: new Secret(base.url) })
  opened.push({ database, base })
  return { database, url: base.url }
}

/** Everything that a schema is made of, in one text. */
async function schemaOf(database: Database): Promise<string> {
  const rows = await database.rows(
    `select 'column ' || table_name || '.' || column_name || ' ' || data_type || ' '
              || is_nullable || ' ' || coalesce(column_default, '-') || ' '
              || coalesce(numeric_precision::text, '-') as line
       from information_schema.columns where table_schema = 'public'
     union all
     select 'constraint ' || conrelid::regclass || ' ' || conname || ' '
              || pg_get_constraintdef(oid)
       from pg_constraint where connamespace = 'public'::regnamespace
     union all
     select 'index ' || indexdef from pg_indexes where schemaname = 'public'
     order by line`,
  )
  return rows.map((row) => String(row.line)).join('\n')
}

async function failure(work: Promise<unknown>): Promise<Fault> {
  try {
    await work
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  return expect.unreachable('nothing was thrown')
}

test('an empty database gets every version, and a second run changes nothing', {
  tags: ['slow'],
}, async () => {
  const { database } = await empty()
  expect(await migrate(database, AT)).toEqual({ from: 0, to: SCHEMA_VERSION })
  const schema = await schemaOf(database)
  expect(await migrate(database, AT + 1n)).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION })
  expect(await schemaOf(database)).toBe(schema)
  const recorded = await database.rows(
    'select version, name, applied_at_micros from service_platform_migrations order by version',
  )
  expect(recorded).toEqual([
    { version: 1, name: 'initial', applied_at_micros: String(AT) },
    { version: 2, name: 'invitation-operations', applied_at_micros: String(AT) },
    { version: 3, name: 'managed-grants', applied_at_micros: String(AT) },
    { version: 4, name: 'pepper-checks', applied_at_micros: String(AT) },
    { version: 5, name: 'workloads', applied_at_micros: String(AT) },
    { version: 6, name: 'operator-operations', applied_at_micros: String(AT) },
    { version: 7, name: 'audited-credentials', applied_at_micros: String(AT) },
    { version: 8, name: 'retention', applied_at_micros: String(AT) },
    { version: 9, name: 'derived-sessions', applied_at_micros: String(AT) },
  ])
})

test('a schema migrated step by step equals a fresh one', { tags: ['slow'] }, async () => {
  const fresh = await empty()
  await migrate(fresh.database, AT)
  const stepwise = await empty()
  for (let version = 1; version <= MIGRATIONS.length; version++) {
    const schema = withMigrations(MIGRATIONS.slice(0, version))
    const result = await migrate(stepwise.database, AT, schema)
    expect(result).toEqual({ from: version - 1, to: version })
  }
  expect(await schemaOf(stepwise.database)).toBe(await schemaOf(fresh.database))
})

test('grants from before version 3 become unmanaged legacy with their capabilities', async () => {
  const { database } = await empty()
  await migrate(database, AT, withMigrations(MIGRATIONS.slice(0, 2)))
  await database.rows(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('opr_00000000000000000000000001', 'old', 1)`,
  )
  await database.rows(
    `insert into service_operator_grants
       (operator_id, scope_kind, capabilities, created_at_micros)
     values ('opr_00000000000000000000000001', 'installation', array['logs:read'], 1)`,
  )
  await migrate(database, AT)
  const grants = await database.rows(
    'select source, source_id, capabilities from service_operator_grants',
  )
  expect(grants).toEqual([{ source: 'legacy', source_id: null, capabilities: ['logs:read'] }])
})

test('an invitation since version 5 has a code or names a workload, never both', async () => {
  const { database } = await empty()
  await migrate(database, AT, withMigrations(MIGRATIONS.slice(0, 4)))
  const [operator, invitation] = ['opr', 'opi'].map((prefix) => `${prefix}_${'0'.repeat(25)}1`)
  await database.rows(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ($1, 'old', 1)`,
    [operator!],
  )
  await database.rows(
    `insert into service_operator_invitations
       (invitation_id, kind, code_digest, operator_name, role, scope_kind, capabilities, state,
        created_by, created_at_micros, expires_at_micros)
     values ($1, 'delegated', sha256('code'), 'new', 'observer', 'installation', array['logs:read'],
             'pending', $2, 1, 2)`,
    [invitation!, operator!],
  )
  await migrate(database, AT)
  const kept = `select code_digest = sha256('code') as code, provider_id, subject_digest, state
                  from service_operator_invitations`
  expect(await database.rows(kept)).toEqual([
    { code: true, provider_id: null, subject_digest: null, state: 'pending' },
  ])
  const change = (columns: string) =>
    database.rows(`update service_operator_invitations set ${columns}`)
  const identity = `provider_id = 'ci', subject_digest = sha256('subject')`
  for (const broken of [identity, 'code_digest = null', `${identity.split(',')[0]}`]) {
    await expect(change(broken)).rejects.toThrow()
  }
  await change(`code_digest = null, ${identity}`)
})

test('servers that migrate at the same time wait for each other and all succeed', async () => {
  const { database, url } = await empty()
  const others = Array.from({ length: 5 }, () => new Database({ url: new Secret(url) }))
  try {
    const results = await Promise.all([database, ...others].map((each) => migrate(each, AT)))
    expect(results.filter((result) => result.from === 0)).toHaveLength(1)
    expect(results.filter((result) => result.from === SCHEMA_VERSION)).toHaveLength(5)
  } finally {
    await Promise.all(others.map((other) => other.close()))
  }
})

test.each([
  [
    'a version from the future',
    `schema version ${SCHEMA_VERSION + 1} is unknown to this program`,
    (database: Database) =>
      database.rows(
        `insert into service_platform_migrations (version, name, checksum, applied_at_micros)
       values ($1, 'future', decode(repeat('00', 32), 'hex'), 1)`,
        [SCHEMA_VERSION + 1],
      ),
  ],
  [
    'an edited checksum',
    'another definition',
    (database: Database) =>
      database.rows(
        `update service_platform_migrations set checksum = decode(repeat('00', 32), 'hex')
        where version = 2`,
      ),
  ],
  [
    'another name',
    'another definition',
    (database: Database) =>
      database.rows(`update service_platform_migrations set name = 'x' where version = 1`),
  ],
  [
    'a missing version',
    'not recorded',
    (database: Database) =>
      database.rows('delete from service_platform_migrations where version = 2'),
  ],
  [
    'a version record that was cut',
    'contradict',
    (database: Database) =>
      database.rows('delete from service_platform_migrations where version = $1', [SCHEMA_VERSION]),
  ],
  [
    'the mark of another program',
    'contradict',
    (database: Database) => database.rows(`update service_platform_meta set product = 'x'`),
  ],
])('%s fails closed and writes nothing', { tags: ['slow'] }, async (_, detail, tamper) => {
  const { database } = await empty()
  await migrate(database, AT)
  await tamper(database)
  const before = await database.rows('select * from service_platform_migrations order by version')
  const fault = await failure(migrate(database, AT))
  expect(fault.code).toBe('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(fault.detail).toContain(detail)
  expect(fault.message).toBe(CODES.SERVER_PLATFORM_DATABASE_UNAVAILABLE.message)
  expect(await database.rows('select * from service_platform_migrations order by version')).toEqual(
    before,
  )
})

test('an older program rejects a newer schema of the identity, whatever that records', async () => {
  const { database } = await empty()
  await migrate(database, AT)
  const later = [READABLE, { ...EXPAND, readableFrom: 1 }]
  await migrate(database, AT, withMigrations([...MIGRATIONS, ...later]))
  for (const known of [MIGRATIONS.slice(0, 2), MIGRATIONS, [...MIGRATIONS, READABLE]]) {
    const fault = await failure(migrate(database, AT, withMigrations(known)))
    expect(fault.code).toBe('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
    expect(fault.detail).toBe(
      'a newer version has changed it: ' +
        `schema version ${known.length + 1} is unknown to this program`,
    )
  }
})

const READABLE: Migration = {
  version: SCHEMA_VERSION + 1,
  name: 'readable-from',
  sql: 'alter table service_platform_migrations add column readable_from integer;',
}
const KNOWN = [...MIGRATIONS, READABLE]
const LATER = KNOWN.length + 1
const EXPAND: Migration = {
  version: LATER,
  name: 'expand',
  sql: '-- Operators have notes.\nalter table service_operators add column note text;',
  readableFrom: KNOWN.length,
}
const CONTRACT: Migration = {
  version: LATER + 1,
  name: 'contract',
  sql: 'alter table service_operators drop column note;',
  readableFrom: LATER,
}
const readable = (...later: Migration[]) => ({
  ...withMigrations([...KNOWN, ...later]),
  isReadableByEarlier: true,
})

test('a program uses a later schema that names its version, and leaves it as it is', async () => {
  const { database } = await empty()
  await migrate(database, AT, readable())
  const later = readable(EXPAND)
  expect(await migrate(database, AT, later)).toEqual({ from: KNOWN.length, to: LATER })
  expect(await migrate(database, AT, readable())).toEqual({ from: LATER, to: LATER })
  expect(await migrate(database, AT, later)).toEqual({ from: LATER, to: LATER })
  // The migration after it is for programs of the version between alone.
  expect(await migrate(database, AT, readable(EXPAND, CONTRACT))).toEqual({
    from: LATER,
    to: LATER + 1,
  })
  expect(await migrate(database, AT, later)).toEqual({ from: LATER + 1, to: LATER + 1 })
  expect(await failure(migrate(database, AT, readable()))).toMatchObject({
    code: 'SERVER_DATABASE_NEWER',
    detail: `documents: schema version ${LATER + 1} is unknown to this program`,
  })
})

test('a schema can be read as it will be migrated, and stays as it is', {
  tags: ['slow'],
}, async () => {
  const { database } = await empty()
  await migrate(database, AT)
  const before = await schemaOf(database)
  const schema = withMigrations([...KNOWN, EXPAND])
  const read = await readMigrated(database, schema, async (connection) => {
    const { rows } = await connection.query('select count(note) from service_operators')
    return rows
  })
  expect(read).toEqual([{ count: '0' }])
  expect(await schemaOf(database)).toBe(before)
  const failed = failure(readMigrated(database, schema, () => Promise.reject(new Fault('BUSY'))))
  expect((await failed).code).toBe('BUSY')
  expect(await schemaOf(database)).toBe(before)
})

test('a migration that fails leaves the database as it was', async () => {
  const { database } = await empty()
  const broken: Migration = {
    version: 6,
    name: 'broken',
    sql: 'create table service_platform_extra (id integer); select 1 / 0;',
  }
  const fault = await failure(migrate(database, AT, withMigrations([...MIGRATIONS, broken])))
  expect(fault.code).toBe('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(await schemaOf(database)).toBe('')
})

test('tables of another program are not changed', async () => {
  const { database } = await empty()
  await database.rows('create table service_operators (mine integer)')
  const fault = await failure(migrate(database, AT))
  expect(fault.code).toBe('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(await schemaOf(database)).toBe('column service_operators.mine integer YES - 32')
})

test('a database without synchronous commits is rejected', async () => {
  const { database, url } = await empty()
  const name = new URL(url).pathname.slice(1)
  await database.rows(`alter database ${name} set synchronous_commit = off`)
  const other = new Database({ url: new Secret(url) })
  try {
    const fault = await failure(migrate(other, AT))
    expect(fault.detail).toContain('synchronous_commit = off')
  } finally {
    await other.close()
  }
})

test('a database that is not encoded in UTF-8 is rejected', async () => {
  const { database, url } = await empty()
  const name = `${new URL(url).pathname.slice(1)}_ascii`
  await database.rows(`create database ${name} template template0 encoding 'SQL_ASCII'`)
  const address = new URL(url)
  address.pathname = `/${name}`
  const ascii = new Database({ url: new Secret(address.href) })
  try {
    expect((await failure(migrate(ascii, AT))).detail).toContain('UTF-8')
  } finally {
    await ascii.close()
    await database.rows(`drop database ${name}`)
  }
})

test('a server that does not respond is unavailable, and the fault has no password', async () => {
  const database = new Database({ url: new Secret('postgres://u:hunter2@127.0.0.1:1/x') })
  const fault = await failure(migrate(database, AT))
  expect(fault.code).toBe('SERVER_PLATFORM_DATABASE_UNAVAILABLE')
  expect(`${fault.detail}${fault.message}`).not.toContain('hunter2')
  await database.close()
})

const SOUND = {
  version: 160_000,
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  server_encoding: 'UTF8',
  standby: false,
}

test.each([
  [{}, null],
  [{ synchronous_commit: 'remote_apply' }, null],
  [{ version: 159_999 }, 'version: PostgreSQL 15 is older than 16'],
  [{ fsync: 'off' }, 'PostgreSQL runs with fsync = off'],
  [{ full_page_writes: 'off' }, 'PostgreSQL runs with full_page_writes = off'],
  [{ synchronous_commit: 'off' }, 'PostgreSQL runs with synchronous_commit = off'],
  [{ server_encoding: 'LATIN1' }, 'the database is not encoded in UTF-8'],
  [{ standby: true }, 'PostgreSQL is a standby'],
])('a server with %j is judged %j', (change, rejection) => {
  expect(unsupportedReason({ ...SOUND, ...change })).toBe(rejection)
})

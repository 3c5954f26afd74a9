/**
 * Goal: a migration that states that programs of an earlier version can use the database is one
 * that only adds. Method: the schema at the stated version is compared with the one after the
 * migration, column by column and rule by rule; wrong statements show that this is noticed.
 */
import { describe, expect, test } from 'vitest'
import {
  postgresFacts,
  type SchemaFacts,
  sqliteFacts,
  violations,
} from '../../../testing/migrations/expanded-schemas.ts'
import { IDENTITY_SCHEMA, type Schema } from '../../database/migrate.ts'
import { DOCUMENT_SCHEMA } from '../../documents/postgres/schema.ts'
import { MIGRATIONS as SQLITE_DOCUMENTS } from '../../documents/sqlite/migrations.generated.ts'
import { MIGRATIONS_TABLE } from '../../storage/control/database.ts'
import { MIGRATIONS as LOGS } from '../../storage/logs/migrations.generated.ts'
import { MIGRATIONS as CONTROL } from '../../storage/migrations.generated.ts'
import type { Migration } from '../../value/databases/migrations.ts'

interface Case {
  readonly name: string
  readonly migrations: readonly Migration[]
  readonly facts: (migrations: readonly Migration[]) => Promise<SchemaFacts>
}

/** Each database that is made serves all tests. */
function ofPostgres(name: string, schema: Schema): Case {
  const made = new Map<string, Promise<SchemaFacts>>()
  return {
    name,
    migrations: schema.migrations,
    facts(migrations) {
      const key = migrations.map(({ sql }) => sql).join()
      const facts = made.get(key) ?? postgresFacts(schema, migrations)
      made.set(key, facts)
      return facts
    },
  }
}

const ofSqlite = (name: string, migrations: readonly Migration[], first?: string): Case => ({
  name,
  migrations,
  facts: async (given) => sqliteFacts(given, first),
})

const CASES: readonly Case[] = [
  ofPostgres('documents in PostgreSQL', DOCUMENT_SCHEMA),
  ofSqlite('documents in SQLite', SQLITE_DOCUMENTS),
  ofSqlite('control', CONTROL, MIGRATIONS_TABLE),
  ofSqlite('logs', LOGS),
]

/** Returns what is wrong with the statements of the migrations, by their names. */
async function wrongStatements({ migrations, facts }: Case): Promise<Record<string, string[]>> {
  const wrong: Record<string, string[]> = {}
  for (const { version, name, readableFrom = version } of migrations) {
    if (readableFrom >= version) continue
    const [before, after] = await Promise.all([
      facts(migrations.slice(0, readableFrom)),
      facts(migrations.slice(0, version)),
    ])
    const found = violations(before, after)
    if (found.length > 0) wrong[name] = found
  }
  return wrong
}

test.each(CASES)('$name: migrations for programs of earlier versions only add', async (each) => {
  expect(await wrongStatements(each)).toEqual({})
})

/** Statements that an author might think of as harmless, for each dialect. */
const BREAKING: readonly (readonly [what: string, sqlite: string, postgres: string])[] = [
  [
    'a column that is gone',
    'alter table buckets drop column quota_bytes',
    'alter table service_operators drop column disabled_at_micros',
  ],
  [
    'a column with another name',
    'alter table buckets rename column quota_bytes to quota',
    'alter table service_operators rename column operator_name to name',
  ],
  [
    'a table with another name',
    'alter table http_mounts rename to mounts',
    'alter table service_operators rename to operators',
  ],
  ['a table that is gone', 'drop table http_mounts', 'drop table service_operators cascade'],
  [
    'a column that must be written',
    `create table b2 (bucket_id text primary key, owner text not null) strict;
     drop table buckets; alter table b2 rename to buckets`,
    'alter table service_operators add column owner text not null',
  ],
  [
    'a unique index over columns that exist',
    'create unique index buckets_by_quota on buckets (quota_bytes)',
    'create unique index by_name on service_operators (operator_name)',
  ],
  [
    'an index that is gone',
    'drop index storage_keys_of_bucket',
    'drop index service_operator_sessions_by_end',
  ],
  [
    'a column of another type',
    `create table m2 (name blob primary key) strict;
     drop table http_mounts; alter table m2 rename to http_mounts`,
    'alter table service_operators alter column created_at_micros type numeric',
  ],
  [
    'a check of a column that exists',
    `create table m2 (version integer primary key check (version < 99), name text not null,
       checksum text not null, applied_at integer not null, readable_from integer) strict;
     drop table control_migrations; alter table m2 rename to control_migrations`,
    'alter table service_operators add check (created_at_micros > 1)',
  ],
]

/** Statements that keep the schema readable. */
const ADDING: readonly (readonly [what: string, sqlite: string, postgres: string])[] = [
  [
    'a column that may be null',
    'alter table buckets add column owner text',
    'alter table service_operators add column note text',
  ],
  [
    'a column with a default',
    "alter table buckets add column kind text not null default 'a' check (kind in ('a', 'b'))",
    "alter table service_operators add column kind text not null default 'a' check (kind <> '')",
  ],
  [
    'a table and an index',
    `create table notes (id text primary key) strict;
     create index by_quota on buckets (quota_bytes)`,
    `create table notes (id text primary key);
     create index by_name on service_operators (operator_name)`,
  ],
]

const CONTROL_CASE = CASES.find(({ name }) => name === 'control')!
/** Its migrations state nothing; its tables serve as those of a schema that does. */
const IDENTITY_CASE = ofPostgres('identity', IDENTITY_SCHEMA)

function withOneMore(base: Case, sql: string): Case {
  const version = base.migrations.length + 1
  const stated = { version, name: 'stated', sql, readableFrom: version - 1 }
  return { ...base, migrations: [...base.migrations, stated] }
}

describe('a migration that states that the version before can use the database', () => {
  test.each(BREAKING)('%s is noticed', { tags: ['slow'] }, async (_, sqlite, postgres) => {
    for (const each of [withOneMore(CONTROL_CASE, sqlite), withOneMore(IDENTITY_CASE, postgres)]) {
      expect(Object.keys(await wrongStatements(each))).toEqual(['stated'])
    }
  })

  test.each(ADDING)('%s is allowed', { tags: ['slow'] }, async (_, sqlite, postgres) => {
    for (const each of [withOneMore(CONTROL_CASE, sqlite), withOneMore(IDENTITY_CASE, postgres)]) {
      expect(await wrongStatements(each)).toEqual({})
    }
  })
})

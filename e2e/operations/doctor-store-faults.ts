/** Faults of documents, log and identity database that the doctor must find. */
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { damage, type Fault, sql } from './doctor-site.ts'

export const STORE_FAULTS: readonly Fault[] = [
  {
    name: 'a damaged document file',
    red: { 'document-file-integrity': 'failed' },
    inject: (site) => damage(site, 'documents.db'),
  },
  {
    name: 'a document file that is gone',
    red: { 'document-file-integrity': 'failed' },
    inject: ({ root }) => {
      for (const end of ['', '-wal', '-shm']) {
        rmSync(join(root, `documents.db${end}`), { force: true })
      }
    },
  },
  {
    name: 'a document file of a newer version',
    red: { 'document-file-schema': 'failed' },
    inject: (site) => sql(site, 'documents.db', 'pragma user_version = 99'),
  },
  {
    name: 'a document file without a write-ahead log',
    red: { 'document-file-mode': 'failed' },
    inject: (site) => sql(site, 'documents.db', 'pragma journal_mode = delete'),
  },
  {
    name: 'a write-ahead log that does not shrink',
    red: { 'document-file-log': 'warning' },
    inject: ({ root }) => {
      const path = join(root, 'documents.db-wal')
      if (!existsSync(path)) writeFileSync(path, '', { mode: 0o600 })
      truncateSync(path, statSync(path).size + 200 * 2 ** 20)
    },
  },
  {
    name: 'documents of an older backup',
    red: { 'documents-sequence': 'failed' },
    inject: (site) => sql(site, 'control.db', 'update environment set documents_sequence = 99999'),
  },
  {
    name: 'an index that is not built',
    red: { 'indexes-built': 'warning' },
    inject: (site) =>
      sql(
        site,
        'documents.db',
        `update indexes set state = 'building', ready_sequence = null
          where table_name = 'entries' and fields <> '[]'`,
      ),
  },
  {
    name: 'an index without one of its entries',
    red: { 'indexes-agree': 'failed' },
    inject: (site) =>
      sql(
        site,
        'documents.db',
        `delete from index_entries where key = (select min(key) from index_entries e
           join indexes i on i.id = e.index_id where table_name = 'entries' and fields <> '[]')`,
      ),
  },
  {
    name: 'a damaged log',
    red: { 'log-integrity': 'failed' },
    inject: (site) => damage(site, 'logs.db'),
  },
  {
    name: 'a log of a newer version',
    red: { 'log-schema': 'failed' },
    inject: (site) => sql(site, 'logs.db', 'pragma user_version = 99'),
  },
  {
    name: 'records that were lost',
    red: { 'log-loss': 'warning' },
    inject: ({ root }) => {
      const path = join(root, 'logs.unwritten')
      const fields = new BigUint64Array(readFileSync(path).buffer.slice(0, 72))
      fields[2] = 5n
      writeFileSync(path, new Uint8Array(fields.buffer))
    },
  },
  {
    name: 'a segment of the log that is altered',
    red: { 'log-archive': 'failed' },
    inject: (site) => {
      const name = '0000000001-00000000.jsonl.zst'
      writeFileSync(join(site.root, 'logs', name), 'ten bytes.', { mode: 0o600 })
      sql(
        site,
        'logs.db',
        `insert into log_segments
           (number, first, last, at, records, bytes, digest, verified_at, name)
           values (1, 1, 1, 1, 1, 10, zeroblob(32), 1, '${name}')`,
      )
    },
  },
  {
    name: 'records that are in no segment for long',
    red: { 'log-archive-age': 'warning' },
    inject: (site) =>
      sql(
        site,
        'logs.db',
        `update log_records set at = at - 9 * 3600 * 1000000 where sequence =
           (select min(sequence) from log_records)`,
      ),
  },
]

export const DATABASE_FAULTS: readonly Fault[] = [
  {
    name: 'a pepper from another backup',
    red: { 'identity-pepper': 'failed' },
    inject: ({ pepper }) => {
      const before = readFileSync(pepper)
      writeFileSync(pepper, Buffer.alloc(32, 9).toString('base64url'))
      return { heal: () => writeFileSync(pepper, before) }
    },
  },
  {
    name: 'no owner',
    red: { owner: 'warning' },
    inject: async ({ query }) => {
      await query('update service_operators set disabled_at_micros = 1')
      return { heal: () => query('update service_operators set disabled_at_micros = null') }
    },
  },
  ...(
    [
      ['commits that do not wait', 'durability', 'failed', 'synchronous_commit = off'],
      ['a read-only database', 'writable', 'warning', 'default_transaction_read_only = on'],
    ] as const
  ).map(
    ([name, check, status, setting]): Fault => ({
      name,
      red: { [`identity-database-${check}`]: status },
      inject: async ({ query }) => {
        await query(`do $$ begin execute format('alter database %I set ${setting}',
          current_database()); end $$`)
        const [parameter] = setting.split(' ')
        return {
          heal: () =>
            query(`set default_transaction_read_only = off; do $$ begin execute
              format('alter database %I reset ${parameter}', current_database()); end $$`),
        }
      },
    }),
  ),
  {
    name: 'no free connection',
    red: { 'identity-database-connections': 'failed' },
    inject: async ({ query }) => {
      const limit = (count: number) =>
        query(`do $$ begin execute format('alter database %I connection limit ${count}',
          current_database()); end $$`)
      await limit(0)
      return { heal: () => limit(-1) }
    },
  },
  {
    name: 'a collation of another version',
    red: { 'identity-database-collation': 'warning' },
    inject: async ({ query }) => {
      const set = (version: string) =>
        query(`update pg_database set datcollversion = ${version}
          where datname = current_database()`)
      await set(`'1.0'`)
      return { heal: () => set('null') }
    },
  },
  {
    name: 'an identity schema of a newer version',
    red: { 'identity-database-schema': 'failed' },
    inject: async ({ query }) => {
      await query(`insert into service_platform_migrations
        select 99, 'x', checksum, applied_at_micros from service_platform_migrations limit 1`)
      return { heal: () => query('delete from service_platform_migrations where version = 99') }
    },
  },
  {
    name: 'a replication slot that nothing reads',
    red: { 'identity-database-old-transactions': 'warning' },
    inject: async ({ query }) => {
      await query(`select pg_create_physical_replication_slot('unused_of_doctor')`)
      return { heal: () => query(`select pg_drop_replication_slot('unused_of_doctor')`) }
    },
  },
]

/** Generated from migrations/logs by build/embed-migrations.ts. Do not edit. */
import type { Migration } from '../../value/databases/migrations.ts'

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'log-records',
    sql: `-- The hot store of operational log records, and the archive segments that were made of them.

create table log_records (
  -- Position of the record in the log of the Environment.
  sequence integer primary key,
  -- Microseconds since the Unix epoch.
  at integer not null,
  stream text not null check (stream in ('platform', 'function', 'audit')),
  -- 0 debug, 1 info, 2 warn, 3 error
  level integer not null check (level between 0 and 3),
  release text,
  function text,
  request text,
  -- JSON of the record without its cursor and its Environment.
  record text not null
) strict;

create index log_records_at on log_records (at);
create index log_records_request on log_records (request, sequence) where request is not null;
create index log_records_severe on log_records (sequence) where level >= 2;

create table log_segments (
  -- From 1, without gaps.
  number integer primary key,
  first integer not null,
  last integer not null,
  -- Time of the newest record.
  at integer not null,
  records integer not null,
  bytes integer not null,
  -- SHA-256 of the file.
  digest blob not null check (length(digest) = 32),
  -- When the file was last read and found whole; null since it was found missing or damaged.
  verified_at integer
) strict;
`,
  },
  {
    version: 2,
    name: 'segment-retention',
    sql: `-- Segments can be in the S3-compatible store, and are removed after a retention of their own.

-- Name of the file or the object. It has a part of the digest, so that no segment replaces another.
alter table log_segments add column name text not null default '';
update log_segments set name = printf('%010d.jsonl.zst', number);

-- Where the bytes are; 'none' once they were removed.
alter table log_segments add column place text not null default 'root'
  check (place in ('root', 's3', 'none'));

-- 1 once the retention is over. The newest removed segment stays as a row: the chain of the
-- segments that are left starts after its digest.
alter table log_segments add column removed integer not null default 0 check (removed in (0, 1));
`,
  },
  {
    version: 3,
    name: 'readable-from',
    sql: `-- Programs of earlier versions learn from the database whether they can use it.

create table log_migrations (
  -- Migrations of earlier versions have no row.
  version integer primary key,
  -- The lowest schema version whose programs read and write the database after the migration.
  readable_from integer not null
) strict;
`,
  },
]

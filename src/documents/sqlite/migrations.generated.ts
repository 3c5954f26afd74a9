/** Generated from migrations/documents/sqlite by build/embed-migrations.ts. Do not edit. */

export const MIGRATIONS: readonly {
  readonly version: number
  readonly name: string
  readonly sql: string
}[] = [
  {
    version: 1,
    name: 'initial',
    sql: `-- The multi-versioned document store. One process owns the file; one thread of it writes.
-- Times are microseconds since the Unix epoch, given by the caller: SQL never reads a clock.

create table migrations (
  version integer primary key,
  name text not null,
  -- SHA-256 of the migration's text.
  checksum blob not null check (length(checksum) = 32)
) strict;

create table store (
  only_row integer primary key check (only_row = 1),
  latest_sequence integer not null check (latest_sequence between 0 and 9007199254740991),
  -- Rows of documents up to this one have been looked at by retention. No row number is used again.
  pruned_row integer not null check (pruned_row >= 0)
) strict;

insert into store (only_row, latest_sequence, pruned_row) values (1, 0, 0);

-- One row a version, appended in the order of the commits: \`row\` ascends with \`sequence\`.
create table documents (
  row integer primary key,
  -- "<table>_<ULID>", so that the documents of a table are one range of this index.
  id text not null,
  sequence integer not null check (sequence > 0),
  created_at_micros integer not null
    check (created_at_micros between -9007199254740991 and 9007199254740991),
  -- Stored JSON; null is a tombstone.
  text text
) strict;

create unique index documents_by_version on documents (id, sequence);

create table indexes (
  id integer primary key autoincrement,
  table_name text not null,
  -- JSON array of field names; [] is the creation order.
  fields text not null,
  state text not null check (state in ('building', 'ready', 'dropped')),
  -- The last document that was filled in.
  built_id text not null,
  -- Snapshots before this one do not see the whole index.
  ready_sequence integer check ((state = 'ready') <= (ready_sequence is not null))
) strict;

create unique index indexes_by_definition on indexes (table_name, fields) where state <> 'dropped';

-- A key and the snapshots that see it: from_sequence <= snapshot < until_sequence. The document's
-- ID is the end of the key. A key that is in use has the greatest safe integer as its end, so that
-- the primary key lets it be in use once.
create table index_entries (
  index_id integer not null,
  key blob not null,
  from_sequence integer not null,
  until_sequence integer not null check (until_sequence > from_sequence),
  primary key (index_id, key, until_sequence)
) strict, without rowid;

create index index_entries_by_end on index_entries (until_sequence)
  where until_sequence < 9007199254740991;

-- What a repeated Mutation is answered from.
create table operations (
  row integer primary key,
  operation_id text not null unique,
  fingerprint blob not null,
  commit_sequence integer check (commit_sequence > 0),
  release_id text not null,
  function text not null,
  -- Tagged JSON.
  result text not null,
  attempts integer not null check (attempts > 0),
  created_at_micros integer not null
) strict;

-- The newest sequence at a time; at most about one row a second, for retention by age.
create table sequence_times (
  sequence integer primary key,
  at_micros integer not null
) strict;
`,
  },
  {
    version: 2,
    name: 'schema-evolution',
    sql: `-- Releases with different fields of one table serve side by side.

-- JSON array with the stored JSON of the value that an absent field has, or null, for each field of
-- the index; null where no field has one. Two Releases with other defaults order documents apart.
alter table indexes add column defaults text;

drop index indexes_by_definition;

create unique index indexes_by_definition on indexes (table_name, fields, coalesce(defaults, ''))
  where state <> 'dropped';

-- The names of all fields that documents of a table may have. A table without a row has no
-- documents yet.
create table field_shapes (
  table_name text primary key,
  -- JSON; "any" where the names are not known.
  shape text not null
) strict, without rowid;

-- Documents that were stored before have fields of any name. The ID ends with "_" and 26 characters,
-- and "\`" is the character after "_".
with recursive tables (name) as (
  select min(substr(id, 1, length(id) - 27)) from (select id from documents order by id limit 1)
  union all
  select (select substr(d.id, 1, length(d.id) - 27) from documents d
           where d.id > tables.name || '\`' order by d.id limit 1)
    from tables where name is not null
)
insert into field_shapes (table_name, shape)
select name, '"any"' from tables where name is not null;
`,
  },
]

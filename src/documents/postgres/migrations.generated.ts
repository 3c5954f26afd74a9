/** Generated from migrations/documents/postgres by build/embed-migrations.ts. Do not edit. */
import type { Migration } from '../../value/databases/migrations.ts'

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'documents',
    sql: `-- The multi-versioned document store of one Product Environment, in a schema of its own, which is
-- the search path of every connection. One server writes: the one that holds the epoch.
-- Times are microseconds since the Unix epoch, given by the caller: SQL never reads a clock.

create schema if not exists svc_documents;

create table service_platform_meta (
  singleton boolean primary key default true check (singleton),
  product text not null,
  schema_version integer not null
);

create table service_platform_migrations (
  version integer primary key check (version >= 1),
  name text not null,
  checksum bytea not null check (octet_length(checksum) = 32),
  applied_at_micros bigint not null
);

create table state (
  only_row boolean primary key default true check (only_row),
  environment_id text not null,
  -- Made with the row; the Product root remembers it, so that neither is used without the other.
  database_id text not null,
  -- The server that took the epoch last. Every change is made under a share lock on this row.
  writer text not null,
  epoch bigint not null check (epoch > 0),
  -- Retention has looked at the documents of the batches up to this one, and at so many of the next.
  pruned_batch bigint not null default 0,
  pruned_documents integer not null default 0
);

-- One row a commit, so that a lost answer can be read back: a row that every commit changed would
-- leave a dead version each time, all of which a long backup keeps. It tells the age of sequences,
-- and what was written and recorded then: retention walks these rows, where an index of all
-- versions and one of all operations would be a tenth of what a commit costs.
create table batches (
  batch bigint primary key check (batch > 0),
  latest_sequence bigint not null check (latest_sequence between 0 and 9007199254740991),
  at_micros bigint not null,
  -- IDs of documents, one for each version.
  written text[] storage external not null,
  -- IDs of operations.
  recorded text[] storage external not null
) with (toast_tuple_target = 8160);

create index batches_by_time on batches (at_micros);

create table documents (
  -- "<table>_<ULID>", so that the documents of a table are one range of the primary key.
  id text collate "C" not null,
  sequence bigint not null check (sequence > 0),
  created_at_micros bigint not null
    check (created_at_micros between -9007199254740991 and 9007199254740991),
  -- Stored JSON; null is a tombstone.
  text text,
  primary key (id, sequence)
);

create table indexes (
  id integer generated always as identity primary key,
  table_name text collate "C" not null,
  -- Names of fields; {} is the creation order.
  fields text[] not null,
  state text not null check (state in ('building', 'ready', 'dropped')),
  -- The last document that was filled in.
  built_id text collate "C" not null default '',
  -- Snapshots before this one do not see the whole index.
  ready_sequence bigint check ((state = 'ready') <= (ready_sequence is not null))
);

create unique index indexes_by_definition on indexes (table_name, fields)
  where state <> 'dropped';

-- A key and the snapshots that see it: from_sequence <= snapshot < until_sequence. The document's
-- ID is the end of the key. A key that is in use has the greatest safe integer as its end, so that
-- the primary key lets it be in use once.
create table index_entries (
  index_id integer not null,
  key bytea not null,
  from_sequence bigint not null,
  until_sequence bigint not null check (until_sequence > from_sequence),
  primary key (index_id, key, until_sequence)
);

create index index_entries_by_end on index_entries (until_sequence)
  where until_sequence < 9007199254740991;

-- What a repeated Mutation is answered from.
create table operations (
  operation_id text collate "C" primary key,
  fingerprint bytea not null,
  commit_sequence bigint check (commit_sequence > 0),
  release_id text not null,
  function text not null,
  -- Tagged JSON.
  result text not null,
  attempts integer not null check (attempts > 0),
  created_at_micros bigint not null
);
`,
  },
  {
    version: 2,
    name: 'schema-evolution',
    sql: `-- Releases with different fields of one table serve side by side.

-- JSON array with the stored JSON of the value that an absent field has, or null, for each field of
-- the index; null where no field has one. Two Releases with other defaults order documents apart.
alter table indexes add column defaults text collate "C";

drop index indexes_by_definition;

-- A default may be longer than an entry of an index can be, so its hash stands for it.
create unique index indexes_by_definition
  on indexes (table_name, fields, hashtextextended(coalesce(defaults, ''), 0))
  where state <> 'dropped';

-- The names of all fields that documents of a table may have. A table without a row has no
-- documents yet.
create table field_shapes (
  table_name text collate "C" primary key,
  -- JSON; "any" where the names are not known.
  shape text not null
);

-- Documents that were stored before have fields of any name. The ID ends with "_" and 26 characters,
-- and "\`" is the character after "_".
with recursive tables (name) as (
  select (select left(id, -27) from documents order by id limit 1)
  union all
  select (select left(d.id, -27) from documents d
           where d.id > tables.name || '\`' order by d.id limit 1)
    from tables where name is not null
)
insert into field_shapes (table_name, shape)
select name, '"any"' from tables where name is not null;
`,
  },
  {
    version: 3,
    name: 'compact-texts',
    documentMicros: 100,
    sql: `-- IDs are stored as "<table>_" and the 16 bytes of their ULID, and the keys of index entries end
-- with these 16 bytes alone. Entries that are in use have no end, which takes no byte.

-- JSON array of the field names that stored texts have as one character (compact-texts.ts). Names
-- are only appended. Texts that were stored before have their names in full.
alter table field_shapes add column names text not null default '[]';

update field_shapes
   set names = (select coalesce(json_agg(name)::text, '[]')
                  from (select name from json_object_keys(shape::json) name
                         where name ~ '^[A-Za-z0-9_]+$' limit 28) named)
 where shape <> '"any"';

-- The characters of a ULID have five bits each: 10 characters are the time, and two times 8 follow.
create function pg_temp.ulid_bytes(ulid text) returns bytea language plpgsql immutable as $$
declare
  bits bigint := 0;
  digits text := '';
begin
  for i in 1 .. 26 loop
    bits := bits << 5 | strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(ulid, i, 1)) - 1;
    if i in (10, 18, 26) then
      digits := digits || lpad(to_hex(bits), case i when 10 then 12 else 10 end, '0');
      bits := 0;
    end if;
  end loop;
  return decode(digits, 'hex');
end
$$;

create function pg_temp.id_bytes(id text) returns bytea language sql immutable as $$
  select convert_to(left(id, -26), 'UTF8') || pg_temp.ulid_bytes(right(id, 26))
$$;

create function pg_temp.ulid_micros(ulid text) returns bigint language sql immutable as $$
  select 1000 * ('x' || encode(substr(pg_temp.ulid_bytes(ulid), 1, 6), 'hex'))::bit(48)::bigint
$$;

create function pg_temp.all_bytes(ids text[]) returns bytea[] language sql immutable as $$
  select coalesce(array_agg(pg_temp.id_bytes(id) order by at), '{}')
    from unnest(ids) with ordinality listed (id, at)
$$;

create function pg_temp.all_ulids(ids text[]) returns bytea[] language sql immutable as $$
  select coalesce(array_agg(pg_temp.ulid_bytes(right(id, 26)) order by at), '{}')
    from unnest(ids) with ordinality listed (id, at)
$$;

-- The time is null where it is that of the ID.
alter table documents
  alter column created_at_micros drop not null,
  alter column created_at_micros type bigint
    using nullif(created_at_micros, pg_temp.ulid_micros(right(id, 26))),
  alter column id type bytea using pg_temp.id_bytes(id);

-- The ULID of an operation alone.
alter table operations
  alter column operation_id type bytea using pg_temp.ulid_bytes(right(operation_id, 26));

alter table batches
  alter column written type bytea[] using pg_temp.all_bytes(written),
  alter column recorded type bytea[] using pg_temp.all_ulids(recorded);

-- The change of a type resets it.
alter table batches
  alter column written set storage external,
  alter column recorded set storage external;

alter table indexes alter column built_id drop default;

alter table indexes
  alter column built_id type bytea
    using case built_id when '' then ''::bytea else pg_temp.id_bytes(built_id) end,
  alter column built_id set default '';

-- A key and the snapshots that see it: from_sequence <= snapshot < until_sequence. The ULID of the
-- document is the end of the key. A key that is in use has no until_sequence. Any other one is
-- followed by its until_sequence, so that the primary key lets a key be in use once, without a
-- column that repeats the end of each entry.
create table compact_entries (
  from_sequence bigint not null,
  until_sequence bigint check (until_sequence > from_sequence),
  index_id integer not null,
  key bytea not null,
  constraint compact_entries_pkey primary key (index_id, key)
);

insert into compact_entries (from_sequence, until_sequence, index_id, key)
select from_sequence, nullif(until_sequence, 9007199254740991), index_id,
       substr(key, 1, octet_length(key) - octet_length(table_name) - 27)
         || pg_temp.ulid_bytes(convert_from(substr(key, octet_length(key) - 25), 'UTF8'))
         || case until_sequence when 9007199254740991 then '' else int8send(until_sequence) end
  from index_entries
  join indexes on indexes.id = index_id
 order by index_id, key, until_sequence;

drop table index_entries;

alter table compact_entries rename to index_entries;

alter index compact_entries_pkey rename to index_entries_pkey;

create index index_entries_by_end on index_entries (until_sequence)
  where until_sequence is not null;

-- Versions and entries that retention removed are room for new ones after a vacuum, so it runs
-- before they are a fifth of the table, which is the default.
alter table documents set (autovacuum_vacuum_scale_factor = 0.05);
alter table index_entries set (autovacuum_vacuum_scale_factor = 0.05);
alter table operations set (autovacuum_vacuum_scale_factor = 0.05);
alter table batches set (autovacuum_vacuum_scale_factor = 0.05);
`,
  },
  {
    version: 4,
    name: 'readable-from',
    sql: `-- Programs of earlier versions learn from the database whether they can use it.

-- The lowest schema version whose programs read and write the database after the migration. Null
-- for a migration that was applied before this one, which every later program knows.
alter table service_platform_migrations add column readable_from integer;
`,
  },
]

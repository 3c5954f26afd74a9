/** Generated from migrations/documents/sqlite by build/embed-migrations.ts. Do not edit. */
import type { Migration } from '../../value/databases/migrations.ts'

export const MIGRATIONS: readonly Migration[] = [
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
  {
    version: 3,
    name: 'compact-texts',
    documentMicros: 100,
    sql: `-- IDs are stored as "<table>_" and the 16 bytes of their ULID, and the keys of index entries end
-- with these 16 bytes alone: a quarter of the file was the texts of IDs.

-- JSON array of the field names that stored texts have as one character (compact-texts.ts). Names
-- are only appended. Texts that were stored before have their names in full.
alter table field_shapes add column names text not null default '[]';

update field_shapes
   set names = (select json_group_array(key)
                  from (select key from json_each(shape)
                         where key <> '' and key not glob '*[^a-zA-Z0-9_]*' limit 28))
 where shape <> '"any"';

-- The places of the characters of a ULID, from its end, and where the five bits of each belong: to
-- the time, or to one of two parts of eight characters.
create temp table places (place integer primary key, part integer, shift integer);

with recursive all_places (place) as (
  select -26 union all select place + 1 from all_places where place < -1
)
insert into places (place, part, shift)
select place, part, 5 * (case part when 1 then -17 when 2 then -9 else -1 end - place)
  from (select place, case when place < -16 then 1 when place < -8 then 2 else 3 end as part
          from all_places);

-- One row a version, appended in the order of the commits: \`row\` ascends with \`sequence\`.
create table compact_documents (
  row integer primary key,
  -- The documents of a table are one range of the index.
  id blob not null,
  sequence integer not null check (sequence > 0),
  -- Null where it is the time of the ID.
  created_at_micros integer
    check (created_at_micros between -9007199254740991 and 9007199254740991),
  -- Stored JSON with characters for frequent parts (compact-texts.ts); null is a tombstone.
  text text
) strict;

insert into compact_documents (row, id, sequence, created_at_micros, text)
select row, unhex(hex(substr(id, 1, length(id) - 26)) || ulid), sequence,
       case when created_at_micros % 1000 = 0
             and printf('%012x', created_at_micros / 1000) = substr(ulid, 1, 12)
            then null else created_at_micros end,
       text
  from (select d.*,
               (select printf('%012x%010x%010x', sum(bits) filter (where part = 1),
                                                sum(bits) filter (where part = 2),
                                                sum(bits) filter (where part = 3))
                  from (select part,
                               instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
                                     substr(id, place, 1)) - 1
                               << shift as bits
                          from places)) as ulid
          from documents d order by row);

drop table documents;

alter table compact_documents rename to documents;

create unique index documents_by_version on documents (id, sequence);

-- A key and the snapshots that see it: from_sequence <= snapshot < until_sequence. The ULID of the
-- document is the end of the key. A key that is in use has 0 as its end, which takes no byte, so
-- that the primary key lets it be in use once.
create table compact_entries (
  index_id integer not null,
  key blob not null,
  from_sequence integer not null,
  until_sequence integer not null
    check (until_sequence = 0 or until_sequence > from_sequence),
  primary key (index_id, key, until_sequence)
) strict, without rowid;

insert into compact_entries (index_id, key, from_sequence, until_sequence)
select index_id, unhex(hex(substr(key, 1, length(key) - length(table_name) - 27)) || ulid),
       from_sequence, case until_sequence when 9007199254740991 then 0 else until_sequence end
  from (select e.*, i.table_name,
               (select printf('%012x%010x%010x', sum(bits) filter (where part = 1),
                                                sum(bits) filter (where part = 2),
                                                sum(bits) filter (where part = 3))
                  from (select part,
                               instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
                                     substr(cast(substr(e.key, -26) as text), place, 1)) - 1
                               << shift as bits
                          from places)) as ulid
          from index_entries e
          join indexes i on i.id = e.index_id);

drop table index_entries;

alter table compact_entries rename to index_entries;

create index index_entries_by_end on index_entries (until_sequence) where until_sequence > 0;

-- What a repeated Mutation is answered from.
create table compact_operations (
  row integer primary key,
  -- The ULID alone.
  operation_id blob not null unique,
  fingerprint blob not null,
  commit_sequence integer check (commit_sequence > 0),
  release_id text not null,
  function text not null,
  -- Tagged JSON; a long one is compressed, as a blob.
  result any not null,
  attempts integer not null check (attempts > 0),
  created_at_micros integer not null
) strict;

insert into compact_operations (row, operation_id, fingerprint, commit_sequence, release_id,
                                function, result, attempts, created_at_micros)
select row,
       unhex((select printf('%012x%010x%010x', sum(bits) filter (where part = 1),
                                              sum(bits) filter (where part = 2),
                                              sum(bits) filter (where part = 3))
                from (select part,
                             instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
                                   substr(operation_id, place, 1)) - 1
                             << shift as bits
                        from places))),
       fingerprint, commit_sequence, release_id, function, result, attempts, created_at_micros
  from operations order by row;

drop table operations;

alter table compact_operations rename to operations;

drop table places;
`,
  },
  {
    version: 4,
    name: 'readable-from',
    sql: `-- Programs of earlier versions learn from the database whether they can use it.

-- The lowest schema version whose programs read and write the database after the migration. Null
-- for a migration that was applied before this one, which every later program knows.
alter table migrations add column readable_from integer;
`,
  },
]

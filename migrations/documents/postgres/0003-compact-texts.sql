-- IDs are stored as "<table>_" and the 16 bytes of their ULID, and the keys of index entries end
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

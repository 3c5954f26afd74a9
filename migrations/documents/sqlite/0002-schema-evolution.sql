-- Releases with different fields of one table serve side by side.

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
-- and "`" is the character after "_".
with recursive tables (name) as (
  select min(substr(id, 1, length(id) - 27)) from (select id from documents order by id limit 1)
  union all
  select (select substr(d.id, 1, length(d.id) - 27) from documents d
           where d.id > tables.name || '`' order by d.id limit 1)
    from tables where name is not null
)
insert into field_shapes (table_name, shape)
select name, '"any"' from tables where name is not null;

-- Programs of earlier versions learn from the database whether they can use it.

-- The lowest schema version whose programs read and write the database after the migration. Null
-- for a migration that was applied before this one, which every later program knows.
alter table control_migrations add column readable_from integer;

-- Programs of earlier versions learn from the database whether they can use it.

create table log_migrations (
  -- Migrations of earlier versions have no row.
  version integer primary key,
  -- The lowest schema version whose programs read and write the database after the migration.
  readable_from integer not null
) strict;

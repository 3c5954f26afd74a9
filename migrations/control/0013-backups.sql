-- Whole backups: those that operators asked for, and those that the server made by itself.

create table backups (
  backup_id text primary key,
  -- The history of the data. After a restore the backups of the earlier ones are not listed.
  history_id text not null,
  reason text not null check (reason in ('requested', 'scheduled')),
  -- In the Product root, or in the target of continuous backups.
  location text not null check (location in ('root', 'target')),
  state text not null check (state in ('running', 'complete', 'failed')),
  created_at integer not null,
  finished_at integer,
  -- The rest is null before the backup is complete.
  first_segment integer,
  last_segment integer,
  sequence integer,
  documents integer,
  bytes integer,
  -- Files and artifacts that were left out, because their bytes were missing or damaged.
  damaged integer,
  failure_code text,
  check ((state = 'running') = (finished_at is null)),
  check ((state = 'complete') = (last_segment is not null)),
  check ((state = 'failed') = (failure_code is not null))
) strict, without rowid;

-- The life of the data that backups of this root belong to: a restore begins another one. Null
-- before the first start of a version that makes backups, which sets it.

alter table environment add column history_id text;

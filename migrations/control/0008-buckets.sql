-- Buckets of stored files, and the storage keys that open one bucket each to S3 clients. A file is
-- a document that has the name of its bucket, so names stay as they are and are used once.

create table buckets (
  bucket_id text primary key,
  name text not null unique,
  lifecycle text not null check (lifecycle in ('active', 'archived')),
  -- Null for no bound.
  quota_bytes integer check (quota_bytes >= 0),
  maximum_object_bytes integer check (maximum_object_bytes >= 0),
  -- Grows by one with every change, from 1.
  revision integer not null,
  created_at integer not null,
  updated_at integer not null
) strict, without rowid;

create table storage_keys (
  storage_key_id text primary key,
  bucket_id text not null references buckets,
  name text not null,
  access text not null check (access in ('read', 'write')),
  state text not null check (state in ('active', 'revoked')),
  -- The key that the secret is derived from; the secret itself is not stored.
  key_id text references keyring_checks,
  -- The storage key that this one was rotated from.
  replaces text references storage_keys,
  created_at integer not null,
  revoked_at integer,
  check ((state = 'active') = (revoked_at is null)),
  check ((state = 'active') = (key_id is not null))
) strict, without rowid;

create index storage_keys_of_bucket on storage_keys (bucket_id, storage_key_id);

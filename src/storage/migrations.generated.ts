/** Generated from migrations/control by build/embed-migrations.ts. Do not edit. */
import type { Migration } from '../value/databases/migrations.ts'

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'product',
    sql: `-- Control state of one Product Environment. Times are Unix microseconds. A counter that callers see
-- is an integer; an identifier is its text.

create table environment (
  singleton integer primary key check (singleton = 1),
  project_id text not null,
  environment_id text not null,
  -- Grows by one with every change of a Workspace, Release or Channel.
  revision integer not null,
  configuration text not null,
  configuration_revision integer not null,
  lifecycle text not null check (lifecycle in ('active', 'archived')),
  created_at integer not null,
  updated_at integer not null
) strict;

-- A value that only the right key of the keyring produces, so that a keyring from another backup is
-- found when the root is opened and not when the first credential fails.
create table keyring_checks (
  key_id text primary key,
  check_digest blob not null check (length(check_digest) = 32)
) strict, without rowid;

create table releases (
  release_id text primary key,
  workspace text not null,
  state text not null check (state in ('published', 'validated', 'rejected', 'retired')),
  package_digest text not null,
  manifest_digest text not null,
  manifest_bytes integer not null,
  artifact_digest text not null,
  artifact_bytes integer not null,
  created_at integer not null,
  validated_at integer,
  -- Canonical JSON of the checks that decided the state; null while published.
  checks text,
  check ((state = 'published') = (checks is null)),
  check ((state = 'published') = (validated_at is null))
) strict, without rowid;

create table workspace_revisions (
  revision_id text primary key,
  workspace text not null,
  -- The HEAD that the publication expected: 'empty' or a revision.
  expected_head text not null,
  package_digest text not null,
  release_id text not null unique references releases,
  operator_id text not null,
  created_at integer not null,
  -- A HEAD only moves on, so one precondition succeeds at most once.
  unique (workspace, expected_head)
) strict, without rowid;

create table workspaces (
  name text primary key,
  revision_id text not null references workspace_revisions
) strict, without rowid;

create table channels (
  name text primary key,
  release_id text not null references releases,
  revision integer not null,
  changed_at integer not null
) strict, without rowid;

create table channel_history (
  channel text not null references channels,
  revision integer not null,
  release_id text not null references releases,
  previous_release_id text references releases,
  operator_id text not null,
  changed_at integer not null,
  primary key (channel, revision)
) strict, without rowid;

create table application_clients (
  client_id text primary key,
  name text not null,
  kind text not null check (kind in ('public', 'confidential', 'development')),
  -- Sorted, separated by one space.
  maximum_scopes text not null,
  created_at integer not null
) strict, without rowid;

create table application_credentials (
  credential_id text primary key,
  client_id text not null references application_clients,
  name text not null,
  scopes text not null,
  state text not null check (state in ('active', 'revoked', 'deleted')),
  rate_limit integer,
  created_at integer not null,
  revoked_at integer,
  last_used_at integer,
  -- The credential that this one was rotated from.
  replaces text references application_credentials,
  key_id text not null references keyring_checks,
  key_digest blob not null unique check (length(key_digest) = 32),
  check ((state = 'active') = (revoked_at is null))
) strict, without rowid;

create index application_credentials_of_client on application_credentials (client_id, credential_id);

-- Audit records that the identity database has not confirmed yet. Written with the change itself,
-- deleted once delivered.
create table audit_outbox (
  audit_id text primary key,
  record text not null
) strict, without rowid;
`,
  },
  {
    version: 2,
    name: 'configuration',
    sql: `-- Variables and secrets of the Environment, how they changed, and what was done under which
-- Operation ID.

create table configuration (
  name text primary key,
  kind text not null check (kind in ('variable', 'secret')),
  value text,
  -- 12 bytes of nonce, the ciphertext, 16 bytes of tag.
  sealed blob check (length(sealed) > 28),
  key_id text references keyring_checks,
  -- The change that wrote the value; part of what a secret is sealed with.
  revision integer not null,
  created_at integer not null,
  updated_at integer not null,
  check ((kind = 'variable') = (value is not null)),
  check ((kind = 'secret') = (sealed is not null)),
  check ((sealed is null) = (key_id is null))
) strict;

-- The newest revision is the one of the whole configuration.
create table configuration_history (
  revision integer primary key,
  name text not null,
  kind text not null check (kind in ('variable', 'secret')),
  action text not null check (action in ('set', 'delete')),
  operator_id text not null,
  changed_at integer not null
) strict;

create table operations (
  operation_id text primary key,
  kind text not null,
  -- HMAC of the whole request, which may hold a secret that is easily guessed.
  fingerprint blob not null check (length(fingerprint) = 32),
  key_id text not null references keyring_checks,
  -- Canonical JSON; holds no secret.
  result text not null,
  revision integer not null,
  created_at integer not null
) strict, without rowid;

create index operations_by_age on operations (created_at);
`,
  },
  {
    version: 3,
    name: 'serving-policy',
    sql: `-- What environment:default serves: the newest revision is desired, and the newest that converged is
-- served; others are gone.

create table serving_policies (
  revision integer primary key,
  mode text not null check (mode in ('atomic', 'weighted')),
  changed_at integer not null,
  -- When every Release of it was ready for the first time; null before.
  converged_at integer
) strict;

create table serving_policy_releases (
  revision integer not null references serving_policies on delete cascade,
  release_id text not null references releases,
  -- Of 10,000.
  weight integer not null check (weight between 1 and 10000),
  primary key (revision, release_id)
) strict, without rowid;
`,
  },
  {
    version: 4,
    name: 'published-keys',
    sql: `-- The newest key set that each JWT provider published, so that tokens are verified after a restart
-- too while its publisher cannot be reached.

create table published_keys (
  issuer text primary key,
  -- A key set counts only as long as its provider is configured with the address it came from.
  uri text not null,
  -- As it was published; at most what one fetch reads.
  document blob not null check (length(document) between 1 and 262144),
  fetched_at integer not null
) strict;
`,
  },
  {
    version: 5,
    name: 'held-audit',
    sql: `-- Audit records of changes in the document store, which is another database: a record is held from
-- before its change until the change is known to be committed.

alter table audit_outbox add column held integer not null default 0 check (held in (0, 1));
`,
  },
  {
    version: 6,
    name: 'provenance',
    sql: `-- Where a revision comes from, as its publisher declared it: message, commit, branch, pipeline run.
-- Canonical JSON; null for a publication that declared nothing.

alter table workspace_revisions
  add column provenance text check (length(provenance) between 2 and 4096);
`,
  },
  {
    version: 7,
    name: 'cron-activations',
    sql: `-- What operators decided about Crons, by name: a decision holds for every Release that declares the
-- Cron, now and later. A Cron without a row is enabled, at revision 0.

create table cron_activations (
  name text primary key,
  activation text not null check (activation in ('enabled', 'disabled')),
  revision integer not null check (revision > 0),
  changed_at integer not null
) strict, without rowid;
`,
  },
  {
    version: 8,
    name: 'buckets',
    sql: `-- Buckets of stored files, and the storage keys that open one bucket each to S3 clients. A file is
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
`,
  },
  {
    version: 9,
    name: 'publishers',
    sql: `-- A revision is published by an operator or, with a development key, by an application credential:
-- the column has the ID of either.

alter table workspace_revisions rename column operator_id to publisher_id;
`,
  },
  {
    version: 10,
    name: 'documents-sequence',
    sql: `-- The newest sequence of the document store that was durable, a second late at most: documents that
-- end before it have lost commits. 0 where none is known.

alter table environment add column documents_sequence integer not null default 0;
`,
  },
  {
    version: 11,
    name: 'http-mounts',
    sql: `-- Mounts: names under which other services reach the routes of \`http.ts\` of a target without an
-- Application Key. The name is the first part of their URLs.

create table http_mounts (
  name text primary key,
  target text not null,
  -- Requests a second; null for the default.
  rate_limit integer check (rate_limit > 0),
  public_url text,
  -- The keyed digest of the secret part of the path; both are null without one.
  token_digest blob,
  key_id text references keyring_checks,
  -- Grows by one with every change, from 1.
  revision integer not null check (revision > 0),
  created_at integer not null,
  updated_at integer not null,
  check ((token_digest is null) = (key_id is null))
) strict, without rowid;
`,
  },
  {
    version: 12,
    name: 'history',
    sql: `-- The life of the data that backups of this root belong to: a restore begins another one. Null
-- before the first start of a version that makes backups, which sets it.

alter table environment add column history_id text;
`,
  },
  {
    version: 13,
    name: 'backups',
    sql: `-- Whole backups: those that operators asked for, and those that the server made by itself.

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
`,
  },
  {
    version: 14,
    name: 'readable-from',
    sql: `-- Programs of earlier versions learn from the database whether they can use it.

-- The lowest schema version whose programs read and write the database after the migration. Null
-- for a migration that was applied before this one, which every later program knows.
alter table control_migrations add column readable_from integer;
`,
  },
]

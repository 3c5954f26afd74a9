-- Variables and secrets of the Environment, how they changed, and what was done under which
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

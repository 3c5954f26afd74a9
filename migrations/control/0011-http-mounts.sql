-- Mounts: names under which other services reach the routes of `http.ts` of a target without an
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

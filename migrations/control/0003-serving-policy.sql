-- What environment:default serves: the newest revision is desired, and the newest that converged is
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

-- The newest key set that each JWT provider published, so that tokens are verified after a restart
-- too while its publisher cannot be reached.

create table published_keys (
  issuer text primary key,
  -- A key set counts only as long as its provider is configured with the address it came from.
  uri text not null,
  -- As it was published; at most what one fetch reads.
  document blob not null check (length(document) between 1 and 262144),
  fetched_at integer not null
) strict;

-- Values that only the right pepper produces, so that a wrong one ends the start of the server and
-- not the session of every operator. service_platform_meta has one row, and peppers are several.

create table service_platform_pepper_checks (
  -- 'identity', or 'oidc-subject:' and the provider ID.
  pepper text collate "C" primary key,
  check_digest bytea not null check (octet_length(check_digest) = 32),
  recorded_at_micros bigint not null
);

-- Changes of operators by their Operation ID, so that a repeat gets the first answer.

create table service_operator_operations (
  operation_id text collate "C" primary key,
  kind text not null check (kind in ('operator.disable', 'operator.enable')),
  request_fingerprint bytea not null check (octet_length(request_fingerprint) = 32),
  operator_id text collate "C" not null references service_operators (operator_id),
  -- What the first answer said.
  disabled_at_micros bigint,
  authorization_revision bigint not null check (authorization_revision >= 1),
  created_at_micros bigint not null
);

-- Grants owned by a managed source. What was granted before belongs to nobody: unmanaged legacy.

create table service_operator_managed_sources (
  source_id text collate "C" primary key,
  authority text collate "C" not null unique,
  created_at_micros bigint not null
);

-- numeric(20): a source revision is an unsigned 64-bit integer, which bigint cannot hold.
create table service_operator_managed_revisions (
  source_id text collate "C" not null
    references service_operator_managed_sources (source_id),
  operator_id text collate "C" not null references service_operators (operator_id),
  source_revision numeric(20, 0) not null
    check (source_revision between 1 and 18446744073709551615),
  content_digest bytea not null check (octet_length(content_digest) = 32),
  applied_at_micros bigint not null,
  primary key (source_id, operator_id)
);

alter table service_operators
  add column authorization_revision bigint not null default 1
    check (authorization_revision >= 1);

alter table service_operator_grants
  add column source text not null default 'legacy'
    check (source in ('bootstrap', 'invitation', 'managed', 'legacy')),
  add column source_id text collate "C"
    references service_operator_managed_sources (source_id),
  add constraint service_operator_grants_source
    check ((source = 'managed') = (source_id is not null)),
  drop constraint service_operator_grants_one_per_scope,
  add constraint service_operator_grants_one_per_source unique nulls not distinct
    (operator_id, source_id, scope_kind, project_id, environment_id);

-- From here on every grant says where it comes from.
alter table service_operator_grants alter column source drop default;

-- Idempotent issuance of invitations, revocation times and correlation of audit records.

create table service_operator_invitation_operations (
  operation_id text collate "C" primary key,
  request_fingerprint bytea not null check (octet_length(request_fingerprint) = 32),
  scope_kind text not null,
  project_id text collate "C",
  environment_id text collate "C",
  invitation_id text collate "C" not null unique
    references service_operator_invitations (invitation_id),
  created_by text collate "C" not null references service_operators (operator_id),
  created_at_micros bigint not null,
  constraint service_operator_invitation_operations_scope check (
    (scope_kind = 'installation' and project_id is null and environment_id is null)
    or (scope_kind = 'project' and project_id is not null and environment_id is null)
    or (scope_kind = 'environment' and project_id is not null and environment_id is not null)
  )
);

-- Rows that version 1 revoked have no time, so only the other direction is a rule.
alter table service_operator_invitations
  add column revoked_at_micros bigint,
  add constraint service_operator_invitations_revoked
    check (revoked_at_micros is null or state = 'revoked');

alter table service_platform_audit
  add column request_id text collate "C",
  add column session_id text collate "C",
  add column invitation_id text collate "C",
  add column operation_id text collate "C";

create index service_platform_audit_by_invitation
  on service_platform_audit (invitation_id, at_micros) where invitation_id is not null;

create index service_platform_audit_by_operation
  on service_platform_audit (operation_id, at_micros) where operation_id is not null;

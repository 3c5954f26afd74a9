/** Generated from migrations/identity by build/embed-migrations.ts. Do not edit. */
import type { Migration } from '../value/databases/migrations.ts'

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'initial',
    sql: `-- Operator identity. Times are Unix microseconds, passed in by the server: SQL never reads a clock.
-- Of credentials only keyed digests are stored.

create table service_platform_meta (
  singleton boolean primary key default true check (singleton),
  product text not null,
  schema_version integer not null
);

create table service_platform_migrations (
  version integer primary key check (version >= 1),
  name text not null,
  checksum bytea not null check (octet_length(checksum) = 32),
  applied_at_micros bigint not null
);

create table service_operators (
  operator_id text collate "C" primary key,
  operator_name text not null check (char_length(operator_name) between 1 and 128),
  created_at_micros bigint not null,
  disabled_at_micros bigint
);

create table service_operator_invitations (
  invitation_id text collate "C" primary key,
  kind text not null check (kind in ('bootstrap', 'delegated')),
  code_digest bytea not null unique check (octet_length(code_digest) = 32),
  operator_name text check (char_length(operator_name) between 1 and 128),
  role text not null check (role in ('owner', 'operator', 'developer', 'observer')),
  scope_kind text not null,
  project_id text collate "C",
  environment_id text collate "C",
  capabilities text[] not null,
  state text not null check (state in ('pending', 'consumed', 'revoked')),
  created_by text collate "C" references service_operators (operator_id),
  created_at_micros bigint not null,
  expires_at_micros bigint not null,
  consumed_at_micros bigint,
  consumed_by text collate "C" references service_operators (operator_id),
  constraint service_operator_invitations_scope check (
    (scope_kind = 'installation' and project_id is null and environment_id is null)
    or (scope_kind = 'project' and project_id is not null and environment_id is null)
    or (scope_kind = 'environment' and project_id is not null and environment_id is not null)
  ),
  -- A delegated invitation names its operator and its creator; the first owner has no creator.
  constraint service_operator_invitations_kind check (
    (kind = 'bootstrap') = (created_by is null)
    and (kind = 'bootstrap') = (operator_name is null)
    and (kind = 'delegated' or scope_kind = 'installation')
  ),
  constraint service_operator_invitations_consumed check (
    (state = 'consumed') = (consumed_at_micros is not null)
    and (state = 'consumed') = (consumed_by is not null)
  )
);

-- However many servers start at once, one first-owner code is pending.
create unique index service_operator_invitations_one_bootstrap
  on service_operator_invitations (kind)
  where kind = 'bootstrap' and state = 'pending';

create table service_operator_grants (
  grant_id bigint generated always as identity primary key,
  operator_id text collate "C" not null references service_operators (operator_id),
  scope_kind text not null,
  project_id text collate "C",
  environment_id text collate "C",
  capabilities text[] not null,
  created_at_micros bigint not null,
  constraint service_operator_grants_scope check (
    (scope_kind = 'installation' and project_id is null and environment_id is null)
    or (scope_kind = 'project' and project_id is not null and environment_id is null)
    or (scope_kind = 'environment' and project_id is not null and environment_id is not null)
  ),
  constraint service_operator_grants_one_per_scope
    unique nulls not distinct (operator_id, scope_kind, project_id, environment_id)
);

create table service_operator_identities (
  provider_id text collate "C" not null,
  subject_digest bytea not null check (octet_length(subject_digest) = 32),
  operator_id text collate "C" not null references service_operators (operator_id),
  linked_at_micros bigint not null,
  primary key (provider_id, subject_digest)
);

create index service_operator_identities_by_operator
  on service_operator_identities (operator_id);

create table service_operator_sessions (
  session_id text collate "C" primary key,
  operator_id text collate "C" not null references service_operators (operator_id),
  device_name text check (char_length(device_name) between 1 and 128),
  access_digest bytea not null unique check (octet_length(access_digest) = 32),
  access_expires_at_micros bigint not null,
  refresh_digest bytea not null check (octet_length(refresh_digest) = 32),
  refresh_generation bigint not null check (refresh_generation >= 1),
  refresh_expires_at_micros bigint not null,
  created_at_micros bigint not null,
  last_used_at_micros bigint not null,
  revoked_at_micros bigint,
  revocation text check (revocation in ('requested', 'reuse')),
  constraint service_operator_sessions_revoked check (
    (revoked_at_micros is null) = (revocation is null)
  )
);

create index service_operator_sessions_by_operator
  on service_operator_sessions (operator_id, session_id);

create table service_platform_audit (
  audit_id text collate "C" primary key,
  operation text not null check (char_length(operation) between 1 and 128),
  outcome text not null check (outcome in ('succeeded', 'denied', 'failed')),
  actor_operator_id text collate "C",
  subject text collate "C" check (char_length(subject) between 1 and 512),
  at_micros bigint not null
);

create index service_platform_audit_by_time on service_platform_audit (at_micros, audit_id);
`,
  },
  {
    version: 2,
    name: 'invitation-operations',
    sql: `-- Idempotent issuance of invitations, revocation times and correlation of audit records.

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
`,
  },
  {
    version: 3,
    name: 'managed-grants',
    sql: `-- Grants owned by a managed source. What was granted before belongs to nobody: unmanaged legacy.

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
`,
  },
  {
    version: 4,
    name: 'pepper-checks',
    sql: `-- Values that only the right pepper produces, so that a wrong one ends the start of the server and
-- not the session of every operator. service_platform_meta has one row, and peppers are several.

create table service_platform_pepper_checks (
  -- 'identity', or 'oidc-subject:' and the provider ID.
  pepper text collate "C" primary key,
  check_digest bytea not null check (octet_length(check_digest) = 32),
  recorded_at_micros bigint not null
);
`,
  },
  {
    version: 5,
    name: 'workloads',
    sql: `-- Workloads: CI jobs and service accounts that log in with tokens of their platform. Their
-- invitations name an identity instead of having a code, and their sessions have no refresh token.

alter table service_operator_invitations
  alter column code_digest drop not null,
  add column provider_id text collate "C",
  add column subject_digest bytea check (octet_length(subject_digest) = 32),
  -- Either a code or an identity consumes an invitation.
  add constraint service_operator_invitations_proof check (
    (code_digest is null) = (provider_id is not null)
    and (code_digest is null) = (subject_digest is not null)
    and (code_digest is not null or kind = 'delegated')
  );

create index service_operator_invitations_by_identity
  on service_operator_invitations (provider_id, subject_digest, invitation_id)
  where state = 'pending' and provider_id is not null;

alter table service_operator_sessions alter column refresh_digest drop not null;

-- A token of a workload opens one session. The row outlives the token.
create table service_operator_token_uses (
  token_digest bytea primary key check (octet_length(token_digest) = 32),
  session_id text collate "C" not null references service_operator_sessions (session_id),
  expires_at_micros bigint not null,
  replayed_at_micros bigint
);

create index service_operator_token_uses_by_expiry
  on service_operator_token_uses (expires_at_micros);
`,
  },
  {
    version: 6,
    name: 'operator-operations',
    sql: `-- Changes of operators by their Operation ID, so that a repeat gets the first answer.

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
`,
  },
  {
    version: 7,
    name: 'audited-credentials',
    sql: `-- The application credential that made a change of a Workspace with its development key. Such a
-- record has no operator.

alter table service_platform_audit add column credential_id text collate "C";
`,
  },
  {
    version: 8,
    name: 'retention',
    sql: `-- Ended sessions are removed after a time. A session ends when it is revoked, or at its expiry.

create index service_operator_sessions_by_end
  on service_operator_sessions (least(revoked_at_micros, refresh_expires_at_micros));

-- A use of a token refers to its session, and each removal of a session looks for one.
create index service_operator_token_uses_by_session
  on service_operator_token_uses (session_id);
`,
  },
  {
    version: 9,
    name: 'derived-sessions',
    sql: `-- Sessions that are derived from another one, with a part of its rights, an end and a purpose, which
-- audit records name.

-- A parent that is gone ends its derived sessions as a revoked one does, so no key refers to it:
-- retention removes both in any order.
alter table service_operator_sessions
  add column purpose text check (purpose in ('console', 'mcp', 'job')),
  add column parent_session_id text collate "C",
  add column capabilities text[],
  add column scope_kind text,
  add column project_id text collate "C",
  add column environment_id text collate "C",
  add constraint service_operator_sessions_derived check (
    (purpose is null) = (parent_session_id is null)
    and (purpose is null) = (capabilities is null)
    and (purpose is null) = (scope_kind is null)
    and (purpose is null or refresh_digest is null)
  ),
  add constraint service_operator_sessions_scope check (
    (scope_kind is null and project_id is null and environment_id is null)
    or (scope_kind = 'installation' and project_id is null and environment_id is null)
    or (scope_kind = 'project' and project_id is not null and environment_id is null)
    or (scope_kind = 'environment' and project_id is not null and environment_id is not null)
  );

create index service_operator_sessions_by_parent
  on service_operator_sessions (parent_session_id) where parent_session_id is not null;

alter table service_platform_audit
  add column purpose text check (purpose in ('console', 'mcp', 'job'));
`,
  },
]

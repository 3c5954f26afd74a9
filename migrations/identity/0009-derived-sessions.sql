-- Sessions that are derived from another one, with a part of its rights, an end and a purpose, which
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

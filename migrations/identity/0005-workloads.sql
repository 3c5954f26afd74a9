-- Workloads: CI jobs and service accounts that log in with tokens of their platform. Their
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

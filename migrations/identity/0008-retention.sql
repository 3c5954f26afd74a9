-- Ended sessions are removed after a time. A session ends when it is revoked, or at its expiry.

create index service_operator_sessions_by_end
  on service_operator_sessions (least(revoked_at_micros, refresh_expires_at_micros));

-- A use of a token refers to its session, and each removal of a session looks for one.
create index service_operator_token_uses_by_session
  on service_operator_token_uses (session_id);

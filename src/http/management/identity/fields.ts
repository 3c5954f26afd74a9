/** Wire forms of operators, sessions and grants. */
import type { Grant } from '../../../identity/actor.ts'
import type { Login, Session, SessionPage } from '../../../identity/sessions.ts'
import type { SessionId } from '../../../value/ids.ts'
import type { GrantField } from '../../../wire/identity/access.ts'
import type {
  Login as LoginBody,
  OperatorField,
  SessionField,
  Sessions,
} from '../../../wire/identity/auth.ts'

/** Returns the response of a login. No other response contains tokens. */
export function loginBody(login: Login): LoginBody {
  return {
    version: 1,
    operator: operatorField(login.operator),
    session: sessionField(login.session, login.session.sessionId),
    grants: login.grants.map(grantField),
    tokenType: 'Bearer',
    accessToken: login.accessToken.reveal(),
    refreshToken: login.refreshToken?.reveal() ?? null,
  }
}

export function operatorField(operator: Login['operator']): OperatorField {
  const { operatorId, operatorName, createdAtMicros } = operator
  return { operatorId, operatorName, createdAtMicros: String(createdAtMicros) }
}

/** `current` is the session of the caller. */
export function sessionField(session: Session, current: SessionId): SessionField {
  const { derivation } = session
  return {
    sessionId: session.sessionId,
    deviceName: session.deviceName,
    createdAtMicros: String(session.createdAtMicros),
    lastUsedAtMicros: String(session.lastUsedAtMicros),
    accessExpiresAtMicros: String(session.accessExpiresAtMicros),
    refreshExpiresAtMicros: String(session.refreshExpiresAtMicros),
    current: session.sessionId === current,
    ...(derivation !== null && {
      purpose: derivation.purpose,
      parentSessionId: derivation.parentSessionId,
    }),
  }
}

/** `actor` is the session that asks. */
export function sessionsBody({ sessions, next }: SessionPage, actor: SessionId): Sessions {
  return { version: 1, sessions: sessions.map((session) => sessionField(session, actor)), next }
}

export function grantField({ scope, capabilities, source }: Grant): GrantField {
  return { scope, capabilities: [...capabilities], source }
}

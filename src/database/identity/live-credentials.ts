/** The sessions and invitations that work at a time, which a restore may have brought back. */
import type { InvitationId, OperatorId, SessionId } from '../../value/ids.ts'
import type { Reader } from '../database.ts'
import { readId, readNullable, readText } from '../rows.ts'

export interface LiveSession {
  readonly sessionId: SessionId
  readonly operatorId: OperatorId
  readonly deviceName: string | null
}

export interface LiveInvitation {
  readonly invitationId: InvitationId
  /** Null for the first owner. */
  readonly operatorName: string | null
}

export async function listLiveSessions(reader: Reader, atMicros: bigint): Promise<LiveSession[]> {
  const rows = await reader.rows(
    `select session_id, operator_id, device_name from service_operator_sessions
      where revoked_at_micros is null
        and greatest(access_expires_at_micros, refresh_expires_at_micros) > $1
      order by session_id`,
    [atMicros],
  )
  return rows.map((row) => ({
    sessionId: readId(row, 'session_id', 'ops'),
    operatorId: readId(row, 'operator_id', 'opr'),
    deviceName: readNullable(row, 'device_name', readText),
  }))
}

export async function listLiveInvitations(
  reader: Reader,
  atMicros: bigint,
): Promise<LiveInvitation[]> {
  const rows = await reader.rows(
    `select invitation_id, operator_name from service_operator_invitations
      where state = 'pending' and expires_at_micros > $1
      order by invitation_id`,
    [atMicros],
  )
  return rows.map((row) => ({
    invitationId: readId(row, 'invitation_id', 'opi'),
    operatorName: readNullable(row, 'operator_name', readText),
  }))
}

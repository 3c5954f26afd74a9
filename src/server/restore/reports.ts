/** The report that `svc-server restore` prints at its end. */
import type { HistoryAddress } from '../../backups/format/chain.ts'
import type { RestoreResult } from '../../backups/restore/restore.ts'

/** The pepper in the environment, compared with the one of the backed up server. */
export type PepperState = 'right' | 'wrong' | 'unknown'

export interface RestoreReport extends RestoreResult {
  readonly root: string
  readonly from: HistoryAddress
  readonly isRevoked: boolean
  readonly pepper: PepperState
}

const PEPPER: Readonly<Record<PepperState, string>> = {
  right: 'SERVICE_PLATFORM_IDENTITY_PEPPER is the pepper of the server that made the backup.\n',
  wrong:
    'SERVICE_PLATFORM_IDENTITY_PEPPER is another pepper than that of the server that made the ' +
    'backup: a server does not start with it.\n',
  unknown:
    'Give the new server the SERVICE_PLATFORM_IDENTITY_PEPPER of the server that made the ' +
    'backup, and the pepper of its identity provider if it has one.\n',
}

export function reportText(report: RestoreReport): string {
  const { sequence, root, from, historyId, documents, merkle, files, fileBytes } = report
  const lines = [
    `Restored sequence ${sequence} of ${timeOf(report.atMicros)} into ${root}.`,
    `The backup is history ${from.historyId} of ${from.environmentId}; the new root begins ` +
      `${historyId}.`,
    `Documents: ${documents}, with the digest ${merkle}.`,
    `Files and artifacts: ${files}, ${fileBytes} bytes.`,
  ]
  return `${lines.join('\n')}\n${liveText(report)}${PEPPER[report.pepper]}`
}

/** Lists every session, invitation and key that works, or has just been revoked. */
function liveText({ live, isRevoked }: RestoreReport): string {
  const { sessions, invitations, credentials, storageKeys } = live
  const named = [
    ...sessions.map(({ sessionId, operatorId, deviceName }) => [sessionId, operatorId, deviceName]),
    ...invitations.map(({ invitationId, operatorName }) => [invitationId, operatorName]),
    ...[...credentials, ...storageKeys].map(({ id, name }) => [id, name]),
  ]
  if (named.length === 0) return 'No session, invitation or key works.\n'
  const list = named.map((parts) => `  ${parts.filter((part) => part !== null).join(' ')}\n`)
  const head = isRevoked
    ? 'These sessions, invitations and keys came back to life and are revoked now:\n'
    : 'These sessions, invitations and keys work, even if they were revoked after this state; ' +
      '--revoke-resurrected ends them:\n'
  return head + list.join('')
}

export function reportJson(report: RestoreReport): string {
  const { from, live, isRevoked, pepper, ...rest } = report
  const json = {
    sequence: rest.sequence,
    at: timeOf(rest.atMicros),
    root: rest.root,
    environmentId: from.environmentId,
    fromHistoryId: from.historyId,
    historyId: rest.historyId,
    documents: rest.documents,
    merkle: rest.merkle,
    files: rest.files,
    fileBytes: rest.fileBytes,
    ...live,
    revoked: isRevoked,
    pepper,
  }
  return `${JSON.stringify(json)}\n`
}

function timeOf(micros: bigint): string {
  const date = new Date(Number(micros / 1_000n))
  return date.toISOString()
}

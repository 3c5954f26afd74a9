/** The report that `svc-server restore` prints at its end. */
import { join } from 'node:path'
import type { HistoryAddress } from '../../backups/format/chain.ts'
import type { RestoreResult } from '../../backups/restore/restore.ts'
import {
  PEPPERS_DIRECTORY,
  RESTORED_PEPPER_FILE,
  RESTORED_SUBJECT_PEPPERS_FILE,
} from '../../storage/root.ts'

/**
 * The pepper in the environment, or without one that of the backup (`restored`), compared with the
 * pepper that the identity database was used with.
 */
export type PepperState = 'right' | 'wrong' | 'restored' | 'unknown'

export interface RestoreReport extends RestoreResult {
  readonly root: string
  readonly from: HistoryAddress
  readonly isRevoked: boolean
  readonly pepper: PepperState
}

const PEPPER = 'SERVICE_PLATFORM_IDENTITY_PEPPER'

export function reportText(report: RestoreReport): string {
  const { sequence, root, from, historyId, documents, merkle, files, fileBytes } = report
  const lines = [
    `Restored sequence ${sequence} of ${timeOf(report.atMicros)} into ${root}.`,
    `The backup is history ${from.historyId} of ${from.environmentId}; the new root begins ` +
      `${historyId}.`,
    `Documents: ${documents}, with the digest ${merkle}.`,
    `Files and artifacts: ${files}, ${fileBytes} bytes.`,
  ]
  if (report.missingFiles > 0) lines.push(missingText(report.missingFiles))
  return `${lines.join('\n')}\n${liveText(report)}${pepperText(report)}`
}

function missingText(count: number): string {
  return (
    `The backup lacks the bytes of ${count} files: they were damaged, or the server was lost ` +
    'before the target had them. Downloads of them fail, and svc health shows files as degraded.'
  )
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

/** Says where the peppers are, or what a server without them cannot do. */
function pepperText(report: RestoreReport): string {
  const { peppers, root } = report
  const lines = [identityPepperText(report)]
  if (peppers.subjects.length > 0) {
    const file = join(root, RESTORED_SUBJECT_PEPPERS_FILE)
    const fields = `subjectPepper of ${peppers.subjects.join(', ')}`
    lines.push(`${file} has ${fields}: copy it into the OIDC configuration file.`)
  }
  if (peppers.missingSubjects.length > 0) {
    lines.push(
      `The backup does not have subjectPepper of ${peppers.missingSubjects.join(', ')}: take it ` +
        'from the OIDC configuration file of the server that made the backup. With another one ' +
        'the links of operators to that provider are void.',
    )
  }
  if (peppers.identity !== null) {
    lines.push(`Delete ${join(root, PEPPERS_DIRECTORY)} once the peppers are kept elsewhere.`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

function identityPepperText({ pepper, peppers, root }: RestoreReport): string {
  const file = join(root, RESTORED_PEPPER_FILE)
  const start = `Start the server with ${PEPPER}_FILE=${file}, or with a copy of that file.`
  if (pepper === 'right') return `${PEPPER} is the pepper of the server that made the backup.`
  if (pepper === 'restored') return `The backup has the identity pepper. ${start}`
  if (pepper === 'wrong') {
    const wrong =
      `${PEPPER} is another pepper than that of the server that made the backup: a server does ` +
      'not start with it.'
    return peppers.identity === null ? wrong : `${wrong} ${start}`
  }
  if (peppers.identity !== null) return start
  return (
    `The backup has no peppers. Give the new server the ${PEPPER} of the server that made the ` +
    'backup: with another one it does not start. If that pepper is lost, every session and ' +
    'invitation is void, and svc docs backup says how to continue with a new one.'
  )
}

export function reportJson(report: RestoreReport): string {
  const { from, live, isRevoked, pepper, peppers, ...rest } = report
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
    missingFiles: rest.missingFiles,
    ...live,
    revoked: isRevoked,
    pepper,
    peppers: {
      identityFile: peppers.identity === null ? null : join(rest.root, RESTORED_PEPPER_FILE),
      subjectsFile:
        peppers.subjects.length === 0 ? null : join(rest.root, RESTORED_SUBJECT_PEPPERS_FILE),
      subjects: peppers.subjects,
      missingSubjects: peppers.missingSubjects,
    },
  }
  return `${JSON.stringify(json)}\n`
}

function timeOf(micros: bigint): string {
  const date = new Date(Number(micros / 1_000n))
  return date.toISOString()
}

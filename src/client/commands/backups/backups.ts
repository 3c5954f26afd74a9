/** `svc backup`: whole backups of the linked Environment, and the keys that open them. */

import { Fault } from '../../../errors/fault.ts'
import { isRecipient } from '../../../value/backups/recipients.ts'
import type { BackupId } from '../../../value/ids.ts'
import type { BackupField } from '../../../wire/backups/backups.ts'
import { createBackup, listBackups, readBackup } from '../../../wire/operations/backups.ts'
import {
  argument,
  type CommandSpec,
  command,
  flag,
  option,
  repeatedOption,
} from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { pause } from '../../pauses.ts'
import { requestCommand } from '../../request-commands.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { formatBytes } from '../../sizes.ts'
import { requireId, usage } from '../../usage.ts'
import { changeIntent, LINKED, OPERATION_ID, operationText } from '../operations.ts'
import { downloadArchive } from './downloads.ts'
import { keygenCommand } from './keygen.ts'

const BACKUP = argument('bkp_ID', 'The backup')
const POLL_MS = 1_000
const COLUMNS = {
  BACKUP: 'backupId',
  STATE: ({ state, failureCode }: BackupField) =>
    failureCode === null ? state : `${state}: ${failureCode}`,
  REASON: 'reason',
  'KEPT IN': 'location',
  SEQUENCE: ({ sequence }: BackupField) => sequence ?? '-',
  DOCUMENTS: ({ documents }: BackupField) => documents ?? '-',
  WRITTEN: ({ bytes }: BackupField) => (bytes === null ? '-' : formatBytes(Number(bytes))),
  CREATED: 'createdAtMicros',
} as const

const list = requestCommand({
  name: 'backup list',
  summary: 'List the whole backups of the Environment',
  options: LINKED,
  examples: ['svc backup list'],
  progress: 'reading the backups',
  request: (remote: Remote) => remote.call(listBackups),
  rows: ({ items }) => items,
  columns: COLUMNS,
  empty: 'The Environment has no backups.',
})

const create: CommandSpec = command({
  name: 'backup create',
  summary: 'Make a whole backup of the running server',
  details: [
    'Only its recipients can open it. The settings of the server name them; a server without these',
    'settings needs --recipient. It waits for the end unless --no-wait is set, and ends with 5 if',
    'the backup fails.',
  ],
  options: {
    ...LINKED,
    recipient: repeatedOption('age1...', 'A recipient of age, as `svc backup keygen` prints it'),
    'no-wait': flag('Return once the backup is started'),
    'operation-id': OPERATION_ID,
  },
  examples: ['svc backup create', 'svc backup create --recipient age1... --no-wait'],
  async run(context, options) {
    const { recipient: recipients, 'no-wait': isStarted = false, ...at } = options
    const wrong = recipients.findIndex((text) => !isRecipient(text))
    if (wrong !== -1)
      throw usage('--recipient needs a recipient of age, without a typing error.', create)
    const intent = changeIntent(context, create, options)
    const { operationId, changedAtMicros } = intent
    const remote = await openRemote(context, at)
    const { output } = context
    await output.note(operationText(intent))
    const body = { changedAtMicros, ...(recipients.length > 0 && { recipients }) }
    const started = await output.progress(
      'starting the backup',
      remote.call(createBackup, { operationId, body }),
    )
    const { operation, ...first } = started
    const ended = isStarted
      ? first
      : await output.progress(
          'making the backup',
          whenEnded(remote, first.backupId, context.signal),
        )
    if (ended.state === 'failed') throw failed(ended)
    await output.result({ ...ended }, [
      ended.state === 'running'
        ? `${ended.backupId} is being made: svc backup show ${ended.backupId}`
        : `${ended.backupId} is complete: ${ended.documents} documents up to sequence ` +
          `${ended.sequence}, ${formatBytes(Number(ended.bytes))} written.`,
    ])
    if (ended.damaged !== null && ended.damaged !== '0') {
      await output.note(`It lacks ${ended.damaged} damaged files: see \`svc docs backup\`.`)
    }
  },
})

/** Waits for the end of a backup. */
async function whenEnded(remote: Remote, backupId: BackupId, signal: AbortSignal) {
  for (;;) {
    const state = await remote.call(readBackup, { params: { backupId } })
    if (state.state !== 'running') return state
    await pause(POLL_MS, signal)
  }
}

function failed({ backupId, failureCode }: BackupField): Fault {
  const detail = `${backupId} failed with ${failureCode}.`
  // The code has a next step of its own.
  if (failureCode === 'BACKUP_TARGET_CHANGED') return new Fault(failureCode, { detail })
  return new Fault('UNAVAILABLE', {
    detail,
    cause: explanation({ next: 'Read the reason with `svc logs --event backup.failed`.' }),
  })
}

const show = requestCommand({
  name: 'backup show',
  summary: 'Show a backup and how it ended',
  positionals: [BACKUP],
  options: LINKED,
  examples: ['svc backup show bkp_...'],
  input: (_, [given]) => ({
    backupId: requireId('bkp', given, 'The backup', { name: 'backup show' }),
  }),
  progress: 'reading the backup',
  request: (remote: Remote, params) => remote.call(readBackup, { params }),
  rows: (state) => [state],
  columns: COLUMNS,
})

const download: CommandSpec = command({
  name: 'backup download',
  summary: 'Write the files of a complete backup into a tar archive',
  details: ['The files stay encrypted. The archive appears under its name once it is whole.'],
  positionals: [BACKUP],
  options: { ...LINKED, out: option('FILE', 'The new file; by default bkp_ID.tar') },
  examples: ['svc backup download bkp_... --out backup.tar'],
  async run(context, { out: file, ...at }, [given]) {
    const backupId = requireId('bkp', given, 'The backup', download)
    const remote = await openRemote(context, at)
    await downloadArchive(context, remote, { backupId, file: file ?? `${backupId}.tar` })
  },
})

export const backupCommands: readonly CommandSpec[] = [list, create, show, download, keygenCommand]

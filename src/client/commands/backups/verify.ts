/** `svc backup verify`: proves that a backup can be restored. It needs no server. */

import { argument, command, flag, option, repeatedOption } from '../../contexts.ts'
import type { CheckedBackup } from '../../development/workspace-tools.ts'
import type { ClientEnvironment } from '../../environment.ts'
import { resolvePath } from '../../roots/roots.ts'
import { timeText } from '../../timestamps.ts'
import { usage } from '../../usage.ts'
import { backupPath, backupVariables } from './sources.ts'

/** Time between two lines of progress. */
const PROGRESS_MILLIS = 1_000

export const backupVerifyCommand = command({
  name: 'backup verify',
  summary: 'Read a whole backup and check all of it',
  details: [
    'It checks the chain of the segments, every digest and the content of every file. --restore',
    'also restores the newest state into a temporary directory, with documents in SQLite, and',
    'compares what the restored store returns. With --database, an empty PostgreSQL database, the',
    'identity database is restored too and removed afterwards; otherwise it is only read.',
    'A rejected backup ends with 6 and names the segment or the file.',
  ],
  positionals: [argument('BACKUP', 'A directory, a tar file, or s3://bucket/prefix')],
  options: {
    identity: repeatedOption('FILE', 'An identity of age that opens the backup'),
    restore: flag('Restore it into a temporary directory'),
    database: option('URL', 'An empty PostgreSQL database, with --restore'),
    environment: option('ID', 'The Environment, if the backup has several'),
    history: option('ID', 'The history; by default the newest one with a whole backup'),
  },
  examples: [
    'svc backup verify /backups --identity backup.key',
    'svc backup verify backup.tar --identity backup.key --restore',
  ],
  async run(context, { identity, restore, database, environment: id, history }, [path]) {
    if (identity.length === 0) throw usage('Name the identity with --identity.')
    if (database !== undefined && !restore) throw usage('--database needs --restore.')
    const { environment } = context
    if (context.tools === null) {
      throw usage('Use the svc executable or `svc-server restore`: this is the packed client.')
    }
    const tools = await context.tools()
    const notes: Promise<void>[] = []
    const checked = await tools.checkBackup({
      from: backupPath(environment, path!),
      identities: identity.map((file) => resolvePath(environment, file)),
      environmentId: id ?? null,
      historyId: history ?? null,
      restores: restore,
      databaseUrl: database ?? null,
      variables: backupVariables(environment),
      onProgress: throttled(environment, (line) => notes.push(context.output.note(line))),
    })
    await Promise.all(notes)
    await context.output.result(documentOf(checked), linesOf(checked))
  },
})

/** Passes on the begin of each step, and then a line a second. */
function throttled(
  { system }: ClientEnvironment,
  print: (line: string) => void,
): (step: string, done: number) => void {
  let current = ''
  let printed = 0
  return (step, done) => {
    const now = system.monotonicMillis()
    if (step === current && now - printed < PROGRESS_MILLIS) return
    current = step
    printed = now
    print(`${step}: ${done}`)
  }
}

function documentOf({ atMicros, ...checked }: CheckedBackup) {
  return { version: 1, ...checked, atMicros: String(atMicros) }
}

function missingText(count: number): string {
  return (
    `The backup lacks the bytes of ${count} files: they were damaged, or the server was lost ` +
    'before the target had them. An earlier backup may have them.'
  )
}

function linesOf(checked: CheckedBackup): string[] {
  const { environmentId, historyId, sequence, atMicros, segments, files, fileBytes, missingFiles } =
    checked
  const lines = [
    `The backup is whole: history ${historyId} of ${environmentId}.`,
    `It leads to sequence ${sequence} of ${timeText(String(atMicros))}.`,
    `Segments: ${segments}. Files and artifacts: ${files}, ${fileBytes} bytes.`,
  ]
  if (missingFiles > 0) lines.push(missingText(missingFiles))
  if (checked.restored === null) return lines
  const { documents, merkle } = checked.restored
  return [...lines, `Restored documents: ${documents}, with the digest ${merkle}.`]
}

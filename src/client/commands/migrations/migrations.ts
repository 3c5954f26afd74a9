/** `svc migrations`: the migrations of a Release, their progress, and what runs or stops them. */
import { isId, type OperationId, type ReleaseId } from '../../../value/ids.ts'
import { MIGRATION_NAME, type MigrationAction } from '../../../value/migrations/migrations.ts'
import type { MigrationItem } from '../../../wire/migrations/migrations.ts'
import { actOnMigration, listMigrations } from '../../../wire/operations/migrations.ts'
import { type CommandSpec, type Context, command, flag, option } from '../../contexts.ts'
import { type Explanations, requestCommand } from '../../request-commands.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { changeIntent, OPERATION_ID, REMOTE } from '../operations.ts'
import { previewLines } from './previews.ts'
import { finalLines, followMigration, startedLines } from './progress.ts'

const MIGRATION = {
  name: 'NAME',
  description: 'The migration, as migrations.ts names it',
  required: true,
} as const

const AT = {
  ...REMOTE,
  release: option('rel_ID', 'A Release that has the migration; by default the newest'),
} as const
const CHANGE = {
  ...AT,
  'operation-id': OPERATION_ID,
} as const

const list: CommandSpec = requestCommand({
  name: 'migrations list',
  summary: 'List the migrations of a Release with their progress',
  options: AT,
  examples: ['svc migrations list', 'svc migrations list --release rel_...'],
  input: ({ release }) => ({ release: releaseOf(release, list) }),
  progress: 'reading the migrations',
  request: (remote, { release }) => listed(remote, release),
  lines({ releaseId, migrations }, { output }) {
    const { length } = migrations
    const count = length === 1 ? '1 migration' : `${length || 'no'} migrations`
    const head = `${releaseId} has ${count}.`
    if (length === 0) return [head]
    const table = output.columns(migrations, {
      NAME: 'name',
      TABLE: 'table',
      STATE: 'state',
      PROCESSED: 'processed',
      CHANGED: 'changed',
      ERROR: 'lastErrorCode',
      STARTED: 'startedAtMicros',
      FINISHED: 'finishedAtMicros',
    })
    return [head, ...table]
  },
})

const run: CommandSpec = requestCommand({
  name: 'migrations run',
  summary: 'Run a migration on the server, or show what it would change',
  details: [
    'It runs in batches beside the calls of applications, and continues after a restart of the',
    'server. A document for which the code fails stops it: correct the document, or publish',
    'corrected code and run that. One that is complete is not repeated: to run its code again,',
    'give it a new name. --dry-run shows ten documents and stores nothing.',
  ],
  positionals: [MIGRATION],
  options: { ...CHANGE, 'dry-run': flag('Show what would change, and store nothing') },
  examples: ['svc migrations run addPriority --dry-run', 'svc migrations run addPriority'],
  input: (options, [name], context) =>
    changeOf(context, run, { action: options['dry-run'] ? 'dry-run' : 'run', name, options }),
  progress: progressText,
  request: act,
  explains: nextSteps,
  lines: (acted, { input }) =>
    input.action === 'dry-run' ? previewLines(acted) : startedLines(acted),
})

const pause = changeCommand('pause', 'Let a running migration wait until it is resumed')
const resume = changeCommand('resume', 'Continue a migration that is paused or blocked')
const cancel = changeCommand('cancel', 'End a migration; what it changed stays changed')

const status: CommandSpec = command({
  name: 'migrations status',
  summary: 'Show the progress of a migration',
  details: [
    'With --follow it reads the progress every second until the migration no longer runs, and ends',
    'with exit code 4 unless it is complete. With --json each state is then one line.',
  ],
  positionals: [MIGRATION],
  options: { ...AT, follow: flag('Continue until the migration no longer runs') },
  examples: ['svc migrations status addPriority --follow'],
  async run(context, { follow = false, release, ...at }, [given]) {
    const name = requireName(given ?? '', status)
    const remote = await openRemote(context, at)
    const read = async () => find(await listed(remote, releaseOf(release, status)), name, status)
    if (follow) return followMigration(context, read)
    const found = await context.output.progress(`reading ${name}`, read())
    await context.output.result(found, finalLines(found))
  },
})

interface Change {
  readonly action: MigrationAction
  readonly name: string
  readonly release: ReleaseId | undefined
  readonly operationId: OperationId
  readonly changedAtMicros: string
}

function changeCommand(action: 'pause' | 'resume' | 'cancel', summary: string): CommandSpec {
  const spec: CommandSpec = requestCommand({
    name: `migrations ${action}`,
    summary,
    positionals: [MIGRATION],
    options: CHANGE,
    examples: [`svc migrations ${action} addPriority`],
    input: (options, [name], context) => changeOf(context, spec, { action, name, options }),
    progress: progressText,
    request: act,
    explains: nextSteps,
    lines: startedLines,
  })
  return spec
}

interface GivenChange {
  readonly action: MigrationAction
  readonly name: string | undefined
  readonly options: {
    readonly release?: string | undefined
    readonly 'operation-id'?: string | undefined
  }
}

function changeOf(context: Context, spec: CommandSpec, { action, name, options }: GivenChange) {
  const { release, 'operation-id': id } = options
  const intent = changeIntent(context, spec, { expected: undefined, 'operation-id': id })
  const { operationId, changedAtMicros } = intent
  const named = { name: requireName(name ?? '', spec), release: releaseOf(release, spec) }
  return { action, ...named, operationId, changedAtMicros }
}

function progressText({ action, name }: Change): string {
  return `${action} ${name}`
}

async function act(remote: Remote, { action, name, release, ...change }: Change) {
  const releaseId = release ?? (await listed(remote, undefined)).releaseId
  const { operationId, changedAtMicros } = change
  return remote.call(actOnMigration, {
    params: { migration: name },
    operationId,
    body: { releaseId, action, changedAtMicros },
    subjects: { name, releaseId },
  })
}

function nextSteps({ name, release }: Change): Explanations {
  const of = release === undefined ? '' : ` --release ${release}`
  return {
    PRODUCT_NOT_FOUND: { next: `Run \`svc migrations list${of}\` to see what exists.` },
    PRODUCT_STATE_CONFLICT: {
      next: `Run \`svc migrations status ${name}${of}\` to see its state.`,
    },
  }
}

function listed(remote: Remote, release: ReleaseId | undefined) {
  const subjects = release === undefined ? {} : { release }
  return remote.call(listMigrations, { query: { release }, subjects })
}

function find(
  { releaseId, migrations }: { releaseId: string; migrations: readonly MigrationItem[] },
  name: string,
  spec: CommandSpec,
): MigrationItem {
  const found = migrations.find((migration) => migration.name === name)
  if (found !== undefined) return found
  const names = migrations.map((migration) => migration.name).join(', ') || 'none'
  throw usage(`${releaseId} has no migration ${name} (it has: ${names}).`, spec)
}

function releaseOf(given: string | undefined, spec: CommandSpec): ReleaseId | undefined {
  if (given === undefined || isId('rel', given)) return given
  throw usage('--release needs a rel_ identifier.', spec)
}

function requireName(name: string, spec: CommandSpec): string {
  if (MIGRATION_NAME.test(name)) return name
  throw usage('NAME is the name of a migration, such as addPriority.', spec)
}

export const migrationCommands: readonly CommandSpec[] = [list, run, pause, resume, cancel, status]

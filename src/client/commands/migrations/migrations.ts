/** `svc migrations`: the migrations of a Release, their progress, and what runs or stops them. */
import { isId, type ReleaseId } from '../../../value/ids.ts'
import { MIGRATION_NAME, type MigrationAction } from '../../../value/migrations/migrations.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { MigrationItem } from '../../../wire/migrations/migrations.ts'
import { actOnMigration, listMigrations } from '../../../wire/operations/migrations.ts'
import { type CommandSpec, command, flag, option } from '../../contexts.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { changeIntent, REMOTE } from '../operations.ts'
import { previewLines } from './previews.ts'
import { finalLines, followMigration, startedLines, stateRow } from './progress.ts'

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
  'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
} as const

const list: CommandSpec = command({
  name: 'migrations list',
  summary: 'List the migrations of a Release with their progress',
  options: AT,
  examples: ['svc migrations list', 'svc migrations list --release rel_...'],
  async run(context, { release, ...at }) {
    const remote = await openRemote(context, at)
    const request = listed(remote, releaseOf(release, list))
    const found = await context.output.progress('reading the migrations', request)
    const rows = found.migrations.map(stateRow)
    const head = ['NAME', 'TABLE', 'STATE', 'PROCESSED', 'CHANGED', 'ERROR', 'STARTED', 'FINISHED']
    const table = rows.length === 0 ? [] : context.output.table(head, rows)
    const count = rows.length === 1 ? '1 migration' : `${rows.length || 'no'} migrations`
    await context.output.result(found, [`${found.releaseId} has ${count}.`, ...table])
  },
})

const run: CommandSpec = command({
  name: 'migrations run',
  summary: 'Run a migration on the server, or show what it would change',
  details: [
    'It runs in batches beside the calls of applications, and continues after a restart of the',
    'server. A document for which the code fails stops it: correct the document, or publish',
    'corrected code and run that. --dry-run shows ten documents and stores nothing.',
  ],
  positionals: [MIGRATION],
  options: { ...CHANGE, 'dry-run': flag('Show what would change, and store nothing') },
  examples: ['svc migrations run addPriority --dry-run', 'svc migrations run addPriority'],
  async run(context, { 'dry-run': isDry = false, ...options }, [given]) {
    const name = requireName(given ?? '', run)
    if (!isDry) return change(context, run, { action: 'run', name, options })
    const { acted } = await act(context, run, { action: 'dry-run', name, options })
    await context.output.result(acted as unknown as Json, previewLines(acted))
  },
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
  readonly options: {
    readonly release?: string | undefined
    readonly 'operation-id'?: string | undefined
  } & Parameters<typeof openRemote>[1]
}

function changeCommand(action: 'pause' | 'resume' | 'cancel', summary: string): CommandSpec {
  const spec: CommandSpec = command({
    name: `migrations ${action}`,
    summary,
    positionals: [MIGRATION],
    options: CHANGE,
    examples: [`svc migrations ${action} addPriority`],
    async run(context, options, [given]) {
      await change(context, spec, { action, name: requireName(given ?? '', spec), options })
    },
  })
  return spec
}

type RunContext = Parameters<CommandSpec['run']>[0]

async function change(context: RunContext, spec: CommandSpec, given: Change): Promise<void> {
  const { acted } = await act(context, spec, given)
  await context.output.result(acted as unknown as Json, startedLines(acted))
}

async function act(context: RunContext, spec: CommandSpec, { action, name, options }: Change) {
  const { 'operation-id': id, release, ...at } = options
  const intent = { expected: undefined, 'operation-id': id }
  const { operationId, changedAtMicros } = changeIntent(context, spec, intent)
  const remote = await openRemote(context, at)
  const work = async () => {
    const releaseId = releaseOf(release, spec) ?? (await listed(remote, undefined)).releaseId
    return remote.call(actOnMigration, {
      params: { migration: name },
      operationId,
      body: { releaseId, action, changedAtMicros },
      subjects: { name, releaseId },
    })
  }
  return { acted: await context.output.progress(`${action} ${name}`, work()) }
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

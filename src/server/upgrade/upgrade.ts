/**
 * `svc-server upgrade --check`: says what this version would change in the databases and settings
 * of a server of an earlier version. It changes nothing and may run beside that server.
 */
import { KINDS } from '../../errors/kinds.ts'
import { SETTING_CHANGES } from '../../settings/setting-changes.ts'
import { parseSettings, type ServerSettings } from '../../settings/settings.ts'
import { unreadNames } from '../../settings/sources.ts'
import { type Migration, summaryOf } from '../../value/databases/migrations.ts'
import { BUILD_VERSION, VERSION } from '../../value/version.ts'
import { JSON_OUTPUT } from '../command-line/arguments.ts'
import { renderFailure } from '../failures.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { type DatabaseSurvey, type Survey, surveyServer } from './survey.ts'

/** The result of a start: the previous version can start again, it cannot, or this one cannot. */
type Outcome = 'ready' | 'one-way' | 'blocked'

const EXITS: Readonly<Record<Outcome, number>> = {
  ready: 0,
  'one-way': KINDS.conflict.exit,
  blocked: KINDS.startup.exit,
}

export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const configuration = parseSettings(environment, 'upgrade')
  const survey = await surveyServer(configuration)
  const report = reportOf(survey, configuration, environment)
  io.out(args.includes(JSON_OUTPUT) ? `${JSON.stringify(report)}\n` : textOf(report))
  return EXITS[report.outcome]
}

/** The JSON of the mode (contract/wire.md, Upgrade check). */
export type UpgradeReport = ReturnType<typeof reportOf>

function reportOf(
  survey: Survey,
  configuration: Pick<ServerSettings, 'deprecatedNames' | 'product'>,
  environment: ProcessEnvironment,
) {
  const databases = survey.databases.map(databaseOf)
  const neededBytes = sum(inRoot(survey).map((each) => each.neededBytes))
  const { running, freeBytes } = survey
  const hasRoom = freeBytes === null || freeBytes >= neededBytes
  const isBlocked = !hasRoom || survey.databases.some(({ problem }) => problem !== null)
  const isOneWay = survey.databases.some(({ oneWay }) => oneWay)
  const outcome: Outcome = isBlocked ? 'blocked' : isOneWay ? 'one-way' : 'ready'
  return {
    version: 1,
    program: BUILD_VERSION,
    outcome,
    running,
    previousCanStart: !isOneWay,
    backup: isOneWay ? backupOf(configuration) : null,
    seconds: Math.ceil(sum(databases.flatMap(({ pending }) => pending.map((m) => m.seconds)))),
    disk: { neededBytes, freeBytes },
    databases,
    settings: {
      changes: SETTING_CHANGES.filter(({ version }) => version === VERSION).map(
        ({ name, change, note }) => ({ name, change, note }),
      ),
      deprecated: configuration.deprecatedNames,
      unknown: unreadNames(environment),
    },
  }
}

/** Returns where the backup before one-way migrations is made; null for none. */
function backupOf({ product }: Pick<ServerSettings, 'product'>): 'target' | 'root' | null {
  const backups = product?.backups ?? null
  if (backups === null) return null
  return backups.target === null ? 'root' : 'target'
}

function databaseOf(survey: DatabaseSurvey) {
  const { name, store, found, target, oneWay, documents, neededBytes, problem } = survey
  return {
    name,
    store,
    found,
    target,
    oneWay,
    documents,
    neededBytes,
    pending: survey.pending.map((migration) => pendingOf(migration, survey)),
    problem: problem === null ? null : renderFailure(problem).text.trimEnd(),
  }
}

function pendingOf(migration: Migration, { found, documents }: DatabaseSurvey) {
  const { version, name, documentMicros = 0 } = migration
  return {
    version,
    name,
    change: summaryOf(migration),
    oneWay: (migration.readableFrom ?? version) > found,
    seconds: (documents * documentMicros) / 1e6,
  }
}

function inRoot({ databases }: Survey): readonly DatabaseSurvey[] {
  return databases.filter(({ store }) => store === 'sqlite')
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

const BACKUP_PLACES = { target: 'target of backups', root: 'Product root' } as const
const STORES = { postgresql: 'PostgreSQL', sqlite: 'SQLite' } as const

function textOf(report: UpgradeReport): string {
  const lines = [`svc-server ${report.program} would find:`, '']
  for (const database of report.databases) {
    lines.push(`  ${database.name} (${STORES[database.store]}): ${stateOf(database)}`)
    for (const { version, name, change } of database.pending) {
      lines.push(`    ${version} ${name}: ${change}`)
    }
  }
  lines.push('', ...conclusion(report), '')
  const { changes, deprecated, unknown } = report.settings
  if (changes.length > 0)
    lines.push(`Settings of ${VERSION} that earlier versions lack or differ in:`)
  for (const { name, change, note } of changes) lines.push(`  ${change}: ${name}: ${note}`)
  for (const name of deprecated) lines.push(`Deprecated name in use: ${name}`)
  for (const name of unknown) lines.push(`Not a setting of this server: ${name}`)
  return `${lines.join('\n')}\n`
}

function stateOf(database: UpgradeReport['databases'][number]): string {
  const { found, target, pending, documents, problem, oneWay } = database
  if (problem !== null) return problem
  if (found === 0) return 'does not exist yet'
  if (pending.length === 0) return `schema version ${found}, nothing to do`
  const seconds = Math.ceil(sum(pending.map((each) => each.seconds)))
  const time = seconds === 0 ? '' : `, about ${seconds} s for ${documents} documents`
  return `schema version ${found} to ${target}${time}${oneWay ? ', one way' : ''}`
}

function conclusion(report: UpgradeReport): string[] {
  const { outcome, running, disk } = report
  const lines: string[] = []
  if (disk.neededBytes > 0) {
    const free = disk.freeBytes === null ? 'unknown' : String(disk.freeBytes)
    lines.push(`Disk of the Product root: ${disk.neededBytes} bytes are needed, ${free} are free.`)
  }
  for (const { name, store, neededBytes } of report.databases) {
    if (store === 'sqlite' || neededBytes === 0) continue
    lines.push(`PostgreSQL of the ${name}: ${neededBytes} bytes are needed.`)
  }
  if (running === true) lines.push('A server uses the Product root: stop it before you migrate.')
  if (outcome === 'blocked') return [...lines, 'This version does not start: fix what is named.']
  if (outcome === 'ready') {
    return [...lines, 'This version starts by itself, and the previous one can start afterwards.']
  }
  return [
    ...lines,
    'This version starts by itself, but the previous one cannot start afterwards.',
    report.backup === null
      ? 'No backup would be made before: make one, or set SERVICE_BACKUP_RECIPIENTS.'
      : `A backup would be made before, in the ${BACKUP_PLACES[report.backup]}.`,
  ]
}

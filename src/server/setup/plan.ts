/** The steps of an installation on one machine, from what the machine has already. */

import { parseDatabaseUrl } from '../../settings/addresses.ts'
import { FileFailure, readSecretFile } from '../../system/files.ts'
import { Secret } from '../../value/secret.ts'
import type { SetupArguments } from './arguments.ts'
import { unsupported } from './faults.ts'
import { DATABASE_URL_FILE, ENVIRONMENT_FILE, PRODUCT, USER } from './locations.ts'
import type { Machine } from './machine.ts'
import type { Platform } from './platforms.ts'
import { findCluster, isOwnUrl, postgresSteps, socketUrl } from './postgres.ts'
import {
  accountSteps,
  directorySteps,
  requireLastingExecutable,
  type ServiceOptions,
  serviceSteps,
  toolSteps,
} from './service.ts'
import { keptSettings, settingsSteps } from './settings-files.ts'
import type { Step } from './steps.ts'

const URL_BYTES_MAX = 8 * 1024

export interface Plan {
  readonly steps: readonly Step[]
  /** Facts for the operator, printed before the question. */
  readonly notes: readonly string[]
}

/** Only reads. Throws SERVER_SETUP_UNSUPPORTED. */
export async function planInstallation(
  machine: Machine,
  platform: Platform,
  args: SetupArguments,
  options: ServiceOptions,
): Promise<Plan> {
  requireLastingExecutable(machine)
  const kept = keptSettings(machine)
  const { databaseUrl, steps, notes } = await database(machine, platform, args)
  if (kept !== null) notes.push(...notesOf(kept, args))
  const files = { databaseUrl, arguments: args }
  return {
    notes,
    steps: [
      ...toolSteps(machine, platform),
      ...steps,
      ...(await accountSteps(machine, platform)),
      ...directorySteps(machine, platform, args.environmentName),
      ...settingsSteps(machine, files),
      ...(await serviceSteps(machine, platform, options)),
    ],
  }
}

/** Says which settings an existing file lacks, since the setup never changes it. */
function notesOf(kept: Readonly<Record<string, string>>, { publicUrl }: SetupArguments): string[] {
  const notes: string[] = []
  if (kept.SERVICE_PRODUCT_ROOT === undefined) {
    notes.push(`${ENVIRONMENT_FILE} has no SERVICE_PRODUCT_ROOT: add ${PRODUCT} to call Functions.`)
  }
  if (publicUrl !== null && publicUrl !== kept.SERVICE_PUBLIC_MANAGEMENT_URL) {
    notes.push(`${ENVIRONMENT_FILE} exists and stays as it is: --public-url has no effect.`)
  }
  return notes
}

interface DatabasePlan {
  readonly databaseUrl: string
  readonly steps: readonly Step[]
  readonly notes: string[]
}

/** A URL that this machine has stays, and PostgreSQL is only set up for the one of the setup. */
async function database(
  machine: Machine,
  platform: Platform,
  args: SetupArguments,
): Promise<DatabasePlan> {
  const found = machine.read(DATABASE_URL_FILE)?.trim() ?? null
  const given = args.databaseUrlFile === null ? null : readDatabaseUrl(args.databaseUrlFile)
  if (found !== null && given !== null && found !== given) {
    const note = `${DATABASE_URL_FILE} has another URL and stays as it is.`
    return { databaseUrl: found, steps: [], notes: [note] }
  }
  if (given !== null) return { databaseUrl: given, steps: [], notes: [] }
  const names = { role: USER, database: args.database }
  if (found !== null && !isOwnUrl(found)) {
    const note = `The database that ${DATABASE_URL_FILE} names is used; none is created.`
    return { databaseUrl: found, steps: [], notes: [note] }
  }
  const cluster = await findCluster(machine, platform)
  const databaseUrl = socketUrl(cluster, names)
  if (found !== null && found !== databaseUrl) {
    throw unsupported(
      `${DATABASE_URL_FILE} names another database or port than this setup would create. Repeat ` +
        'the setup with the same --database NAME as before',
    )
  }
  const steps = postgresSteps(machine, platform, cluster, names)
  return { databaseUrl, steps, notes: [...cluster.notes] }
}

/** The URL may have a password, so no message repeats it. */
function readDatabaseUrl(path: string): string {
  let text: string
  try {
    text = new TextDecoder().decode(readSecretFile(path, { bytesMax: URL_BYTES_MAX })).trim()
  } catch (error) {
    if (!(error instanceof FileFailure)) throw error
    throw unsupported(`--database-url-file needs ${error.message}`)
  }
  if (parseDatabaseUrl(new Secret(text)) !== null) return text
  throw unsupported('The file of --database-url-file needs postgres://user:password@host/database')
}

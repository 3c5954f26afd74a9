/** Lets the new version check the server of this machine: `svc-server upgrade --check`. */
import { rejected } from './faults.ts'
import type { Run } from './programs.ts'
import type { Service } from './services/service.ts'

/** Longer than a survey of large databases takes. */
const CHECK_MS = 600_000

const EXIT_READY = 0
const EXIT_ONE_WAY = 4

export interface ServerCheck {
  /** True if the installed version cannot start after the migrations of the new one. */
  readonly isOneWay: boolean
  /** The place of the backup before one-way migrations; null if the start makes none. */
  readonly backup: string | null
  /** Estimated seconds of the migrations. */
  readonly seconds: number
  /** The report as the mode prints it for people. */
  readonly text: string
}

/** Runs the mode with the settings and the user of the service. Throws CLIENT_UPGRADE_BLOCKED. */
export async function checkServer(
  run: Run,
  executable: string,
  service: Service,
): Promise<ServerCheck> {
  const { user, variables } = service
  const options = { user, variables, timeoutMs: CHECK_MS }
  const command = [executable, 'upgrade', '--check'] as const
  const people = await run([...command], options)
  if (people.status !== EXIT_READY && people.status !== EXIT_ONE_WAY) {
    const said = `${people.stdout}\n${people.stderr}`.trim() || 'The check did not end.'
    throw rejected('CLIENT_UPGRADE_BLOCKED', `The check says:\n${said}\n`)
  }
  const programs = await run([...command, '--json'], options)
  const report = parseReport(programs.stdout)
  if (report === null || programs.status !== people.status) {
    throw rejected('CLIENT_UPGRADE_BLOCKED', 'The report of the check has another form.')
  }
  return { ...report, isOneWay: people.status === EXIT_ONE_WAY, text: people.stdout.trimEnd() }
}

/**
 * Returns whether a version would start on the databases as they are. The file may have any name,
 * by which the program would not know that it is the server.
 */
export async function canStart(run: Run, executable: string, service: Service): Promise<boolean> {
  const { user, variables } = service
  const options = { user, variables, timeoutMs: CHECK_MS, name: 'svc-server' }
  const { status } = await run([executable, 'upgrade', '--check'], options)
  return status === EXIT_READY || status === EXIT_ONE_WAY
}

function parseReport(text: string): Pick<ServerCheck, 'backup' | 'seconds'> | null {
  try {
    const { backup, seconds } = JSON.parse(text)
    const isBackup = backup === null || typeof backup === 'string'
    return isBackup && Number.isFinite(seconds) && seconds >= 0 ? { backup, seconds } : null
  } catch {
    return null
  }
}

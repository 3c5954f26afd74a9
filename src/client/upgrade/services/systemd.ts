/** The server as a unit of systemd, as `install.sh --service` sets it up. */
import { readFileSync } from 'node:fs'
import { withPath } from '../../files.ts'
import {
  parseAssignments,
  parseEnvironmentFile,
  type ServiceVariables,
} from '../environment-files.ts'
import type { Run } from '../programs.ts'
import {
  isSameFile,
  lastLines,
  manage,
  SERVICE_NAME,
  type Service,
  type ServiceSearch,
  userOf,
} from './service.ts'

const UNIT = `${SERVICE_NAME}.service`
const PROPERTIES = ['LoadState', 'ExecStart', 'User', 'Environment', 'EnvironmentFiles']
/** States in which the unit is wanted, one between two attempts of a start included. */
const RUNNING = ['active', 'activating', 'reloading']

/** Returns null unless a unit of this machine starts the executable. */
export async function findSystemdService(search: ServiceSearch): Promise<Service | null> {
  const { run, executable } = search
  const shown = await run(['systemctl', 'show', UNIT, `--property=${PROPERTIES.join(',')}`])
  if (shown.status !== 0) return null
  const fields = (name: string): string[] =>
    shown.stdout
      .split('\n')
      .filter((line) => line.startsWith(`${name}=`))
      .map((line) => line.slice(name.length + 1))
  if (fields('LoadState')[0] !== 'loaded') return null
  const started = /\bpath=(.*?) ;/.exec(fields('ExecStart')[0] ?? '')?.[1]
  if (started === undefined || !isSameFile(started, executable)) return null
  const user = fields('User')[0] ?? ''
  return {
    manager: 'systemd',
    name: UNIT,
    user: await userOf(search, user === '' ? 'root' : user),
    // A file decides where both name a variable.
    variables: Object.assign(
      {},
      ...fields('Environment').map(parseAssignments),
      ...fields('EnvironmentFiles').map(readFile),
    ),
    ...commands(run),
  }
}

function commands(run: Run): Omit<Service, 'manager' | 'name' | 'user' | 'variables'> {
  const state = async (): Promise<string> =>
    (await run(['systemctl', 'is-active', UNIT])).stdout.trim()
  const begin = async (verb: string): Promise<void> => {
    // Starts that failed before count against the limit of the unit.
    await run(['systemctl', 'reset-failed', UNIT])
    await manage(run, ['systemctl', verb, UNIT])
  }
  return {
    isRunning: async () => RUNNING.includes(await state()),
    hasFailed: async () => (await state()) === 'failed',
    start: () => begin('start'),
    stop: async () => void (await manage(run, ['systemctl', 'stop', UNIT])),
    restart: () => begin('restart'),
    log: async () => {
      const options = ['--unit', UNIT, '--lines', '5', '--output', 'cat', '--no-pager', '--quiet']
      return lastLines((await run(['journalctl', ...options])).stdout)
    },
  }
}

/** Reads a file of EnvironmentFiles, as `systemctl show` prints it. Throws CLIENT_FILE_FAILED. */
function readFile(shown: string): ServiceVariables {
  const [, path, optional] = /^(.*) \(ignore_errors=(yes|no)\)$/.exec(shown) ?? []
  if (path === undefined) return {}
  try {
    return parseEnvironmentFile(withPath(path, () => readFileSync(path, 'utf8')))
  } catch (error) {
    if (optional === 'yes') return {}
    throw error
  }
}

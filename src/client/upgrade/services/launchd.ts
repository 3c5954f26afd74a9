/** The server as a daemon of launchd, as `svc-server.plist` describes it. */
import { Secret } from '../../../value/secret.ts'
import { parseEnvironmentFile, type ServiceVariables } from '../environment-files.ts'
import { readText } from '../installations.ts'
import {
  isSameFile,
  manage,
  SERVICE_NAME,
  type Service,
  type ServiceSearch,
  tailOf,
  userOf,
} from './service.ts'

const PLIST = `/Library/LaunchDaemons/${SERVICE_NAME}.plist`
const TARGET = `system/${SERVICE_NAME}`

/** Returns null unless a daemon of this machine starts the executable. */
export async function findLaunchdService(
  search: ServiceSearch,
  plist: string = PLIST,
): Promise<Service | null> {
  const { run, executable } = search
  const converted = await run(['plutil', '-convert', 'json', '-o', '-', plist])
  if (converted.status !== 0) return null
  const daemon = JSON.parse(converted.stdout)
  const { started, settings } = startOf(daemon?.ProgramArguments)
  if (typeof started !== 'string' || !isSameFile(started, executable)) return null
  const isRunning = async (): Promise<boolean> =>
    /\bstate = running\b/.test((await run(['launchctl', 'print', TARGET])).stdout)
  const user: unknown = daemon.UserName
  const log: unknown = daemon.StandardErrorPath
  return {
    manager: 'launchd',
    name: SERVICE_NAME,
    user: await userOf(search, typeof user === 'string' ? user : 'root'),
    variables: { ...plainVariables(daemon.EnvironmentVariables), ...settings },
    isRunning,
    // launchd starts a daemon again without an end.
    hasFailed: async () => false,
    start: async () => {
      const isLoaded = (await run(['launchctl', 'print', TARGET])).status === 0
      const verb = isLoaded ? ['kickstart', TARGET] : ['bootstrap', 'system', plist]
      await manage(run, ['launchctl', ...verb])
    },
    stop: async () => void (await manage(run, ['launchctl', 'bootout', TARGET])),
    restart: async () => void (await manage(run, ['launchctl', 'kickstart', '-k', TARGET])),
    log: async () => (typeof log === 'string' ? tailOf(log) : ''),
  }
}

function plainVariables(variables: unknown): ServiceVariables {
  return Object.fromEntries(
    Object.entries(variables ?? {})
      .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
      .map(([name, value]) => [name, new Secret(value)]),
  )
}

/** The script of `svc-server.plist`, which reads a file of settings and becomes the server. */
const WITH_SETTINGS = /^set -a; \. (\/[\w./-]+); exec "\$0" "\$@"$/

/** Returns the executable of a daemon, and the settings that its shell gives it. */
function startOf(words: unknown): { started: unknown; settings: ServiceVariables } {
  const [program, option, script, executable] = Array.isArray(words) ? words : []
  const path = option === '-c' ? WITH_SETTINGS.exec(String(script))?.[1] : undefined
  if (program !== '/bin/sh' || path === undefined) return { started: program, settings: {} }
  return { started: executable, settings: parseEnvironmentFile(readText(path) ?? '') }
}

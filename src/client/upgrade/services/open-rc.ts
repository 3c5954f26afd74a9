/** The server as a service of OpenRC: a script with `command=`, as Alpine has them. */
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

export interface OpenRcFiles {
  readonly script: string
  /** Files of settings, of which a later one decides. */
  readonly settings: readonly string[]
}

const FILES: OpenRcFiles = {
  script: `/etc/init.d/${SERVICE_NAME}`,
  settings: ['/etc/svc/environment', `/etc/conf.d/${SERVICE_NAME}`],
}
/** Exit code of `rc-service NAME status` for a service that crashed. */
const CRASHED = 32

/** Returns null unless a service of this machine starts the executable. */
export async function findOpenRcService(
  search: ServiceSearch,
  files: OpenRcFiles = FILES,
): Promise<Service | null> {
  const { run, executable } = search
  const script = readText(files.script)
  const started = script === null ? null : assigned(script, 'command')
  if (script === null || started === null || !isSameFile(started, executable)) return null
  const status = async (): Promise<number | null> =>
    (await run(['rc-service', SERVICE_NAME, 'status'])).status
  const order = async (verb: string): Promise<void> =>
    void (await manage(run, ['rc-service', SERVICE_NAME, verb]))
  const log = assigned(script, 'error_log')
  return {
    manager: 'OpenRC',
    name: SERVICE_NAME,
    user: await userOf(search, assigned(script, 'command_user')?.split(':')[0] ?? 'root'),
    variables: Object.assign({}, ...files.settings.map(readSettings)),
    isRunning: async () => (await status()) === 0,
    hasFailed: async () => (await status()) === CRASHED,
    start: () => order('start'),
    stop: () => order('stop'),
    restart: () => order('restart'),
    log: async () => (log === null ? '' : tailOf(log)),
  }
}

/** Returns the value of a variable of a script that is assigned as a plain text. */
function assigned(script: string, name: string): string | null {
  const text = new RegExp(`^[ \\t]*${name}=(.*)$`, 'm').exec(script)?.[1]?.trim()
  const plain = text?.replaceAll(/^"(.*)"$|^'(.*)'$/g, '$1$2')
  return plain === undefined || /[$`"']/.test(plain) ? null : plain
}

function readSettings(path: string): ServiceVariables {
  return parseEnvironmentFile((readText(path) ?? '').replaceAll(/^[ \t]*export[ \t]+/gm, ''))
}

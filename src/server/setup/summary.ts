/** The text after a setup: how to start, to log in and to call, and where things are. */
import { isFault } from '../../errors/fault.ts'
import { parseDatabaseUrl } from '../../settings/addresses.ts'
import { Secret } from '../../value/secret.ts'
import { shellQuoted } from '../../value/shell/shell-words.ts'
import {
  DATABASE_URL_FILE,
  DESCRIPTOR_FILE,
  ENVIRONMENT_FILE,
  EXAMPLE,
  HOME,
  OWNER_CODE_FILE,
  PEPPER_FILE,
  PRODUCT,
  SERVICE,
  SETTINGS_DIRECTORY,
  USER,
} from './locations.ts'
import type { Machine } from './machine.ts'
import { asUser, type Platform } from './platforms.ts'
import { asSuperuser, findCluster, isOwnUrl } from './postgres.ts'
import { readEnvironment } from './settings-files.ts'
import { commandLine } from './steps.ts'

const ENVIRONMENT_ID = /"environmentId":\s*"(env_[0-9A-Z]{26})"/
const MANAGEMENT_LISTEN = '127.0.0.1:3220'

/** Returns the command line that runs a mode with the settings of the service and as its user. */
function modeLine(machine: Machine, platform: Platform, mode: string): string {
  const [sudo, ...rest] = asUser(platform, USER)
  // Without the option sudo would remove the settings.
  const words = platform.family === 'macos' ? [sudo, '-E', ...rest] : [sudo, ...rest]
  const program = shellQuoted(machine.executable)
  return `(set -a; . ${ENVIRONMENT_FILE}; exec ${words.join(' ')} ${program} ${mode})`
}

export function installationSummary(
  machine: Machine,
  platform: Platform,
  isServing: boolean,
): string {
  const settings = readEnvironment(machine) ?? {}
  const lines = ['', isServing ? 'The server runs.' : 'Everything is set up.']
  if (!isServing) lines.push('', 'Start the server:', `  ${startLine(machine, platform)}`)
  lines.push(...loginLines(machine, settings, isServing))
  lines.push('', 'Release the example to the Channel production:', ...releaseLines(machine))
  lines.push(
    '',
    'Where things are:',
    `  ${ENVIRONMENT_FILE}    the settings; restart the service after a change`,
    `  ${PEPPER_FILE}    protects every credential: back it up`,
    `  ${PRODUCT}    the Product root, with documents and files: back it up`,
    `  ${modeLine(machine, platform, 'doctor')}    checks this installation`,
    '',
  )
  return lines.join('\n')
}

function startLine(machine: Machine, platform: Platform): string {
  const { serviceManager } = platform
  if (serviceManager === 'openrc') return 'rc-service svc-server start'
  if (serviceManager === 'launchd') return `launchctl kickstart system/${SERVICE}`
  return serviceManager === 'none'
    ? modeLine(machine, platform, 'serve')
    : 'systemctl start svc-server'
}

function loginLines(
  machine: Machine,
  settings: Readonly<Record<string, string>>,
  isServing: boolean,
): string[] {
  if (isServing && machine.state(OWNER_CODE_FILE) === null) {
    return ['', 'The first owner has logged in.']
  }
  const listen = settings.SERVICE_MANAGEMENT_LISTEN ?? MANAGEMENT_LISTEN
  const url = settings.SERVICE_PUBLIC_MANAGEMENT_URL ?? `http://${listen}`
  const code = `"$(${asRoot(machine)}cat ${OWNER_CODE_FILE})"`
  return [
    '',
    'Log in as the owner, with a code that works once:',
    `  SVC_CODE=${code} svc login --url ${shellQuoted(url)} --code-env SVC_CODE`,
  ]
}

function releaseLines(machine: Machine): string[] {
  const environmentId = ENVIRONMENT_ID.exec(machine.read(DESCRIPTOR_FILE) ?? '')?.[1] ?? 'env_...'
  const copy = `cp -R ${EXAMPLE} my-app/workspace`
  return [
    `  mkdir my-app && svc link --root my-app --environment-id ${environmentId}`,
    machine.invokedBy === null
      ? `  ${copy}`
      : `  sudo ${copy} && sudo chown -R "$USER" my-app/workspace`,
    '  svc release --root my-app --workspace my-app/workspace --channel production',
  ]
}

/** Prefix for a command of root, where the person is not root. */
function asRoot(machine: Machine): string {
  return machine.invokedBy === null ? '' : 'sudo '
}

/** Says what stays, and the commands that would destroy it. */
export async function removalSummary(machine: Machine, platform: Platform): Promise<string> {
  return [
    '',
    'The service is removed. Data, database, settings and secrets are where they were:',
    '`svc-server setup` continues with them.',
    '',
    'These commands destroy them for ever:',
    ...(await dropLines(machine, platform)),
    `  rm -r ${HOME} ${SETTINGS_DIRECTORY}`,
    ...deleteUserLines(platform),
    '',
    'The executables stay until `sh install.sh --uninstall`.',
    '',
  ].join('\n')
}

function deleteUserLines({ family }: Platform): string[] {
  if (family === 'macos') {
    return [`  dscl . -delete /Users/${USER}`, `  dscl . -delete /Groups/${USER}`]
  }
  return [`  ${family === 'alpine' ? 'deluser' : 'userdel'} ${USER}`]
}

/** Returns no lines for a database that the operator named. */
async function dropLines(machine: Machine, platform: Platform): Promise<string[]> {
  const url = machine.read(DATABASE_URL_FILE)?.trim()
  if (url === undefined || !isOwnUrl(url)) return []
  const address = parseDatabaseUrl(new Secret(url))
  if (address === null) return []
  try {
    const cluster = { ...(await findCluster(machine, platform)), port: address.port }
    const line = (program: string, name: string): string =>
      `  ${commandLine([...asSuperuser(platform, cluster, program), '--', name])}`
    return [line('dropdb', address.name), line('dropuser', USER)]
  } catch (error) {
    if (isFault(error, 'SERVER_SETUP_UNSUPPORTED')) return []
    throw error
  }
}

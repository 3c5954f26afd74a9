/** The text after a setup: how to start, to log in and to call, and where things are. */
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
  SETTINGS_DIRECTORY,
  USER,
} from './locations.ts'
import type { Machine } from './machine.ts'
import type { Platform } from './platforms.ts'
import { isOwnUrl } from './postgres.ts'
import { readEnvironment } from './settings-files.ts'

const ENVIRONMENT_ID = /"environmentId":\s*"(env_[0-9A-Z]{26})"/
const MANAGEMENT_LISTEN = '127.0.0.1:3220'

/** Returns the command line that runs a mode with the settings of the service and as its user. */
function modeLine(machine: Machine, mode: string): string {
  const program = shellQuoted(machine.executable)
  return `(set -a; . ${ENVIRONMENT_FILE}; exec runuser -u ${USER} -- ${program} ${mode})`
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
    `  ${modeLine(machine, 'doctor')}    checks this installation`,
    '',
  )
  return lines.join('\n')
}

function startLine(machine: Machine, { serviceManager }: Platform): string {
  if (serviceManager === 'openrc') return 'rc-service svc-server start'
  return serviceManager === 'none' ? modeLine(machine, 'serve') : 'systemctl start svc-server'
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
    `  SVC_CODE=${code} svc login --url ${url} --code-env SVC_CODE`,
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
export function removalSummary(machine: Machine): string {
  const database = ownDatabase(machine)
  const drop =
    database === null
      ? []
      : [
          `  runuser -u postgres -- dropdb -- ${shellQuoted(database)}`,
          `  runuser -u postgres -- dropuser -- ${USER}`,
        ]
  return [
    '',
    'The service is removed. Data, database, settings and secrets are where they were:',
    '`svc-server setup` continues with them.',
    '',
    'These commands destroy them for ever:',
    ...drop,
    `  rm -r ${HOME} ${SETTINGS_DIRECTORY}`,
    `  userdel ${USER}`,
    '',
    'The executables stay until `sh install.sh --uninstall`.',
    '',
  ].join('\n')
}

/** Returns the database that a setup created; null for one that the operator named. */
function ownDatabase(machine: Machine): string | null {
  const url = machine.read(DATABASE_URL_FILE)?.trim()
  if (url === undefined || !isOwnUrl(url)) return null
  return parseDatabaseUrl(new Secret(url))?.name ?? null
}

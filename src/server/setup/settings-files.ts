/** The files in /etc/svc: settings, the URL of the database and the pepper. */
import { randomBytes } from 'node:crypto'
import { shellQuoted } from '../../value/shell/shell-words.ts'
import type { SetupArguments } from './arguments.ts'
import { unsupported } from './faults.ts'
import {
  DATABASE_URL_FILE,
  ENVIRONMENT_FILE,
  PEPPER_FILE,
  PRODUCT,
  SETTINGS_DIRECTORY,
  STATE,
  USER,
} from './locations.ts'
import type { Machine, PlannedFile } from './machine.ts'
import { command, type Step, writeFile } from './steps.ts'

/** The service reads its settings and cannot change them. */
const FILE_MODE = 0o640
const DIRECTORY_MODE = 0o750
const PEPPER_BYTES = 32

const ASSIGNMENT = /^([A-Z][A-Z0-9_]*)=(.*)$/

/** Reads the environment file, whose values have no escapes; null if there is none. */
export function readEnvironment(machine: Machine): Readonly<Record<string, string>> | null {
  const text = machine.read(ENVIRONMENT_FILE)
  if (text === null) return null
  const settings: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const [, name, value = ''] = ASSIGNMENT.exec(line.trim()) ?? []
    if (name !== undefined) settings[name] = value.replace(/^(["'])(.*)\1$/, '$2')
  }
  return settings
}

/**
 * Returns the settings of this machine that the setup keeps, or null if it writes them. Throws
 * SERVER_SETUP_UNSUPPORTED for settings of a server with another database.
 */
export function keptSettings(machine: Machine): Readonly<Record<string, string>> | null {
  const settings = readEnvironment(machine)
  if (settings === null) return null
  if (settings.SERVICE_IDENTITY_DATABASE_URL_FILE === DATABASE_URL_FILE) return settings
  throw unsupported(
    `${ENVIRONMENT_FILE} is of a server that was set up in another way, and it does not name ` +
      `${DATABASE_URL_FILE}. Move it away, or leave this server as it is`,
  )
}

export interface SettingsFiles {
  /** The URL of the database, which is a secret as soon as it has a password. */
  readonly databaseUrl: string
  readonly arguments: SetupArguments
}

export function settingsSteps(machine: Machine, files: SettingsFiles): Step[] {
  const written = [databaseUrl(files), pepper(), environment(files)]
  const ifItFails = `Check that ${SETTINGS_DIRECTORY} is on a writable file system with free space.`
  return [
    {
      title: `Create the directory ${SETTINGS_DIRECTORY}`,
      isDone: async () => {
        const state = machine.state(SETTINGS_DIRECTORY)
        if (state?.isDirectory !== true || state.mode !== DIRECTORY_MODE) return false
        if (!machine.isRoots(state)) return false
        return state.gid === (await machine.groupId(USER))
      },
      actions: [
        command('install', '-d', '-m', '0750', '-o', 'root', '-g', USER, SETTINGS_DIRECTORY),
      ],
      ifItFails,
    },
    {
      title: 'Write the settings and secrets; those that exist stay as they are',
      isDone: async () => {
        for (const file of written) if (!(await machine.isWritten(file))) return false
        return true
      },
      actions: written.map(writeFile),
      ifItFails,
    },
  ]
}

function databaseUrl({ databaseUrl }: SettingsFiles): PlannedFile {
  return file(DATABASE_URL_FILE, true, () => `${databaseUrl}\n`)
}

/** Another pepper would void every credential that this one protects. */
function pepper(): PlannedFile {
  return file(PEPPER_FILE, true, () => `${randomBytes(PEPPER_BYTES).toString('base64url')}\n`)
}

function environment(files: SettingsFiles): PlannedFile {
  const { publicUrl } = files.arguments
  const rows: readonly (readonly [name: string, value: string])[] = [
    ['SERVICE_IDENTITY_DATABASE_URL_FILE', DATABASE_URL_FILE],
    ['SERVICE_PLATFORM_IDENTITY_PEPPER_FILE', PEPPER_FILE],
    ['SERVICE_STATE_DIRECTORY', STATE],
    ['SERVICE_PRODUCT_ROOT', PRODUCT],
    ['SERVICE_APPLICATION_LISTEN', '127.0.0.1:3210'],
    ['SERVICE_APPLICATION_TLS_TERMINATED', 'true'],
    ['SERVICE_RUNNER_SANDBOX', 'required'],
    ...(publicUrl === null
      ? []
      : [
          ['SERVICE_PUBLIC_MANAGEMENT_URL', publicUrl] as const,
          ['SERVICE_MANAGEMENT_TLS_TERMINATED', 'true'] as const,
        ]),
  ]
  const lines = rows.map(([name, value]) => `${name}=${shellQuoted(value)}\n`)
  return file(ENVIRONMENT_FILE, false, () => ENVIRONMENT_HEAD + lines.join(''))
}

const ENVIRONMENT_HEAD = `# Settings of svc-server, written once: a later setup keeps this file.
# \`svc docs settings\` lists all of them. Restart the service after a change.
`

function file(path: string, isSecret: boolean, content: () => string): PlannedFile {
  return { path, mode: FILE_MODE, group: USER, content, isSecret, keepsContent: true }
}

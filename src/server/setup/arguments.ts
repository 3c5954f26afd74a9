/** Arguments of the mode `setup`. */
import { isOrigin } from '../../settings/addresses.ts'
import { absolutePath } from '../../system/files.ts'
import { isName } from '../../value/names.ts'
import { type ModeOption, parseOptions } from '../command-line/options.ts'

export interface SetupArguments {
  readonly action: 'install' | 'uninstall'
  /** Prints the steps, and changes nothing. */
  readonly isDryRun: boolean
  /** Runs the steps without a question. */
  readonly isConfirmed: boolean
  /** An absolute path of a file with a database URL; null lets the setup bring PostgreSQL. */
  readonly databaseUrlFile: string | null
  /** Name of the database that the setup creates. */
  readonly database: string
  /** Display name of the Environment. */
  readonly environmentName: string
  /** HTTPS origin of a proxy before the management address; null without one. */
  readonly publicUrl: string | null
}

/** PostgreSQL cuts longer names off without an error. */
export const DATABASE_NAME_BYTES_MAX = 63
/** The driver leaves the escapes of these characters in the path of a URL as they are. */
const NOT_IN_URL = /[\u0000-\u001f\u007f;/?:@&=+$,#%]/

const TABLE = [
  {
    name: '--with-postgres',
    value: null,
    description: 'Install or use PostgreSQL 16 or newer of this machine, as without any option',
  },
  {
    name: '--database-url-file',
    value: 'FILE',
    description: 'Use the database whose URL the file has, and install no PostgreSQL',
  },
  { name: '--database', value: 'NAME', description: 'Name of the new database; by default svc' },
  { name: '--name', value: 'NAME', description: 'Display name of the Environment' },
  {
    name: '--public-url',
    value: 'ORIGIN',
    description: 'HTTPS origin of a proxy that ends TLS before the management address',
  },
  { name: '--dry-run', value: null, description: 'Print every step, and change nothing' },
  { name: '--yes', value: null, description: 'Run the steps without a question' },
  {
    name: '--uninstall',
    value: null,
    description: 'Stop and remove the service; data, settings and secrets stay',
  },
] as const satisfies readonly ModeOption[]
type Option = (typeof TABLE)[number]['name']

export const SETUP_OPTIONS: readonly ModeOption[] = TABLE

const OF_INSTALLATION: readonly Option[] = [
  '--with-postgres',
  '--database-url-file',
  '--database',
  '--name',
  '--public-url',
]

/** Returns null for arguments that are wrong, or that contradict each other. */
export function parseSetupArguments(args: readonly string[]): SetupArguments | null {
  const given = parseOptions(args, TABLE)
  if (given === null) return null
  const one = (name: Option): string | null => given.get(name)?.[0] ?? null
  const has = (name: Option): boolean => given.has(name)
  const urlFile = one('--database-url-file')
  if (urlFile !== null && (has('--with-postgres') || has('--database'))) return null
  if (has('--uninstall') && OF_INSTALLATION.some(has)) return null
  const databaseUrlFile = urlFile === null ? null : absolutePath(urlFile)
  if (urlFile !== null && databaseUrlFile === null) return null
  const database = one('--database') ?? 'svc'
  const environmentName = one('--name') ?? 'svc'
  const publicUrl = one('--public-url')
  if (!isDatabaseName(database) || !isName(environmentName)) return null
  if (publicUrl !== null && !isOrigin(publicUrl, ['https'])) return null
  return {
    action: has('--uninstall') ? 'uninstall' : 'install',
    isDryRun: has('--dry-run'),
    isConfirmed: has('--yes'),
    databaseUrlFile,
    database,
    environmentName,
    publicUrl,
  }
}

function isDatabaseName(name: string): boolean {
  const { length } = new TextEncoder().encode(name)
  return length > 0 && length <= DATABASE_NAME_BYTES_MAX && !NOT_IN_URL.test(name)
}

/** Detects the distribution and what starts services, and knows the PostgreSQL of its packages. */
import { unsupported } from './faults.ts'
import type { Machine } from './machine.ts'

export type Family = 'debian' | 'fedora' | 'alpine' | 'macos'

/** The program that starts services; an offline systemd does not run, as in an image. */
export type ServiceManager = 'systemd' | 'offline systemd' | 'openrc' | 'launchd' | 'none'

export interface Platform {
  readonly family: Family
  /** Name and version, for messages. */
  readonly name: string
  readonly serviceManager: ServiceManager
  /** Version of PostgreSQL among the packages of the distribution; null if it is older than 16. */
  readonly packaged: number | null
  /** True if the PostgreSQL project has packages for it. */
  readonly hasPgdg: boolean
}

/** The version that comes from the repository of the PostgreSQL project. */
export const PGDG_VERSION = 18
export const OLDEST_VERSION = 16

/**
 * PostgreSQL of each distribution from a version on, newest first. A later version of the
 * distribution has the same or a newer one.
 */
const PACKAGED: Readonly<Record<string, readonly (readonly [from: string, postgres: number])[]>> = {
  debian: [['13', 17]],
  ubuntu: [
    ['26.04', 18],
    ['25.04', 17],
    ['24.04', 16],
  ],
  fedora: [
    ['43', 18],
    ['40', 16],
  ],
  alpine: [
    ['3.23', 18],
    ['3.21', 17],
    ['3.19', 16],
  ],
}
/** Versions for which the PostgreSQL project has packages. */
const OLDEST_WITH_PGDG: Readonly<Record<string, string>> = { debian: '12', ubuntu: '22.04' }

/** Throws SERVER_SETUP_UNSUPPORTED. */
export function detectPlatform(machine: Machine): Platform {
  if (machine.system === 'darwin') return MACOS
  const { ID = '', VERSION_ID = '', PRETTY_NAME = ID } = readRelease(machine)
  const family = FAMILIES[ID]
  if (family === undefined) {
    throw unsupported(
      'The setup knows Debian, Ubuntu, Fedora, Alpine and macOS. `svc docs operations` says ' +
        'what to do on another system',
    )
  }
  const pgdg = OLDEST_WITH_PGDG[ID]
  return {
    family,
    name: PRETTY_NAME,
    serviceManager: serviceManagerOf(machine),
    packaged: newestOf(PACKAGED[ID]!, VERSION_ID),
    hasPgdg: pgdg !== undefined && reaches(VERSION_ID, pgdg),
  }
}

const MACOS: Platform = {
  family: 'macos',
  name: 'macOS',
  serviceManager: 'launchd',
  packaged: PGDG_VERSION,
  hasPgdg: false,
}

/** Returns the words before a command that root runs as another user. */
export function asUser({ family }: Platform, user: string): readonly string[] {
  // sudo asks no question, since root needs no password.
  if (family === 'macos') return ['sudo', '-n', '-H', '-u', user, '--']
  return ['runuser', '-u', user, '--']
}

const FAMILIES: Readonly<Record<string, Family>> = {
  debian: 'debian',
  ubuntu: 'debian',
  fedora: 'fedora',
  alpine: 'alpine',
}

/** Reads os-release(5). Values may be quoted. */
function readRelease(machine: Machine): Readonly<Record<string, string>> {
  // It is a symbolic link to the second file on most systems.
  const text = machine.read('/usr/lib/os-release') ?? machine.read('/etc/os-release') ?? ''
  const pairs = [...text.matchAll(/^([A-Z_]+)=(["']?)(.*)\2$/gm)]
  return Object.fromEntries(pairs.map(([, name, , value]) => [name, value]))
}

/** Debian testing has no version, and newer packages than each release. */
function newestOf(table: readonly (readonly [string, number])[], version: string): number | null {
  if (version === '') return table[0]![1]
  return table.find(([from]) => reaches(version, from))?.[1] ?? null
}

function reaches(version: string, from: string): boolean {
  const [has, needs] = [version, from].map((text) => text.split('.').map(Number))
  const [major = 0, minor = 0] = has!
  const [neededMajor = 0, neededMinor = 0] = needs!
  return major > neededMajor || (major === neededMajor && minor >= neededMinor)
}

function serviceManagerOf(machine: Machine): ServiceManager {
  if (machine.state('/run/systemd/system')?.isDirectory === true) return 'systemd'
  if (machine.hasProgram('systemctl')) return 'offline systemd'
  return machine.hasProgram('rc-service') ? 'openrc' : 'none'
}

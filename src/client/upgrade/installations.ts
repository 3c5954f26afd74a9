/**
 * The installation that this program belongs to: the directory of the executables, the target that
 * they were built for, and the receipt of install.sh.
 */
import { createHash } from 'node:crypto'
import { closeSync, lstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { ClientEnvironment } from '../environment.ts'
import { withPath } from '../files.ts'
import { rejected } from './faults.ts'
import { JOURNAL, readJournal, WORK_DIRECTORY } from './journal.ts'
import type { Run } from './programs.ts'

/** The names of the one executable, first the one that is replaced first. */
export const NAMES = ['svc-server', 'svc'] as const

export interface Receipt {
  /** The directory of the receipt, and of the other files of the installation. */
  readonly share: string
  readonly target: string
  /** SHA-256 of the executable as it was installed. */
  readonly executable: string
  /** The mirror that it was installed from; null for the address of the release. */
  readonly base: string | null
}

export interface Installation {
  readonly directory: string
  /** `svc-server`, or `svc` where that is the only one. */
  readonly primary: string
  /** The other name; null if there is none, or where it is a link to the first. */
  readonly secondary: string | null
  readonly target: string
  /** Null for executables that install.sh did not install. */
  readonly receipt: Receipt | null
}

/** Throws CLIENT_UPGRADE_IMPOSSIBLE where this program is not replaced by this command. */
export async function findInstallation(
  environment: ClientEnvironment,
  run: Run,
): Promise<Installation> {
  const { path } = environment.program
  if (environment.platform === 'win32') {
    throw rejected(
      'CLIENT_UPGRADE_IMPOSSIBLE',
      'Windows does not let a running program be replaced.',
      'Verify and unpack the archive of the release, stop the server, and replace both files.',
    )
  }
  if (!NAMES.some((name) => name === basename(path))) {
    throw rejected(
      'CLIENT_UPGRADE_IMPOSSIBLE',
      'This is not the svc executable.',
      'Replace the file of the packed client by svc-VERSION.mjs of the release.',
    )
  }
  const directory = dirname(path)
  await requireOwnFiles(path, run)
  const [primary, ...others] = NAMES.map((name) => join(directory, name)).filter(isRegularFile)
  if (primary === undefined) throw rejected('CLIENT_UPGRADE_IMPOSSIBLE', `${path} was removed.`)
  // An upgrade that was interrupted leaves a receipt of the other version.
  const journal = readJournal(join(directory, WORK_DIRECTORY, JOURNAL))
  const begun = journal === null ? [] : [journal.fromDigest, journal.toDigest]
  const receipt = findReceipt(environment, directory, [fileDigest(primary), ...begun])
  const target = receipt?.target ?? journal?.target ?? targetOf(primary)
  if (target === null) {
    throw rejected(
      'CLIENT_UPGRADE_IMPOSSIBLE',
      `${primary} is not an executable of a release.`,
      'Install a release with its install.sh.',
    )
  }
  return { directory, primary, secondary: others[0] ?? null, target, receipt }
}

function isRegularFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** Commands that replace a package, by the words in `installed-by`. */
const MANAGERS: Readonly<Record<string, (name: string) => string>> = {
  deb: (name) => `apt-get update && apt-get install --only-upgrade ${name}`,
  rpm: (name) => `dnf upgrade ${name}`,
  brew: (name) => `brew upgrade ${name}`,
  nix: () => 'nix profile upgrade, or update the input of your flake',
}
const PACKAGE = /^[A-Za-z0-9][A-Za-z0-9.+_-]*$/

/**
 * Throws if a package owns the file: its manager would restore its own version, or reject the next
 * one, and would know neither.
 */
async function requireOwnFiles(path: string, run: Run): Promise<void> {
  const owner = markedOwner(path) ?? (await askedOwner(path, run))
  if (owner === null) return
  const { manager, name } = owner
  throw rejected(
    'CLIENT_UPGRADE_IMPOSSIBLE',
    `${path} belongs to a package (${manager}).`,
    `Run: ${MANAGERS[manager]!(name)}`,
  )
}

interface Owner {
  readonly manager: string
  readonly name: string
}

function markedOwner(path: string): Owner | null {
  const prefix = dirname(dirname(path))
  const shared = path.startsWith('/usr/') && !path.startsWith('/usr/local/') ? ['/usr'] : []
  for (const root of [prefix, ...shared]) {
    const manager = readText(join(root, 'share/svc/installed-by'))?.trim() ?? ''
    if (Object.hasOwn(MANAGERS, manager)) return { manager, name: 'svc' }
  }
  if (path.startsWith('/nix/store/')) return { manager: 'nix', name: 'svc' }
  return path.includes('/Cellar/') ? { manager: 'brew', name: 'svc' } : null
}

/** Asks the managers of this machine, each of which fails for a file that is not its own. */
async function askedOwner(path: string, run: Run): Promise<Owner | null> {
  const debian = await run(['dpkg', '-S', path])
  const name = debian.stdout.split(/[:,]/)[0] ?? ''
  if (debian.status === 0 && PACKAGE.test(name)) return { manager: 'deb', name }
  const red = await run(['rpm', '-qf', '--queryformat', '%{NAME}\n', path])
  const named = red.stdout.split('\n')[0] ?? ''
  return red.status === 0 && PACKAGE.test(named) ? { manager: 'rpm', name: named } : null
}

/** Returns the receipt that names one of the digests: others belong to other executables. */
function findReceipt(
  environment: ClientEnvironment,
  directory: string,
  digests: readonly string[],
): Receipt | null {
  const home =
    environment.variable('XDG_DATA_HOME') || join(environment.homeDirectory, '.local/share')
  const places = [join(directory, '.svc-install'), join(home, 'svc'), '/usr/local/share/svc']
  const receipts = places.map(readReceipt)
  return receipts.find((receipt) => digests.includes(receipt?.executable ?? '')) ?? null
}

/** Returns null if there is no receipt of install.sh. */
export function readReceipt(share: string): Receipt | null {
  const lines = (readText(join(share, 'receipt')) ?? '').split('\n')
  const field = (name: string): string | null =>
    lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1) ?? null
  const [target, executable] = [field('target'), field('executable')]
  if (target === null || executable === null) return null
  return { share, target, executable, base: field('base') }
}

export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** Returns the SHA-256 of a file in hexadecimal digits. */
export function fileDigest(path: string): string {
  return withPath(path, () => {
    const hash = createHash('sha256')
    const file = openSync(path, 'r')
    try {
      const block = Buffer.alloc(1 << 20)
      for (;;) {
        const length = readSync(file, block)
        if (length === 0) return hash.digest('hex')
        hash.update(block.subarray(0, length))
      }
    } finally {
      closeSync(file)
    }
  })
}

const ELF = 0x7f454c46
const ELF_MACHINES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' }
const MACH_O = 0xcffaedfe
const MACH_O_MACHINES: Readonly<Record<number, string>> = { 16777223: 'x64', 16777228: 'arm64' }
const PT_INTERP = 3
/** Bytes at the begin of an executable that have its program headers and the name of its loader. */
const HEAD_BYTES = 64 * 1024

/** Returns the target that an executable was built for; null for a file of another kind. */
export function targetOf(path: string): string | null {
  const head = Buffer.alloc(HEAD_BYTES)
  const file = openSync(path, 'r')
  try {
    readSync(file, head)
  } finally {
    closeSync(file)
  }
  if (head.readUInt32BE(0) === MACH_O) {
    const machine = MACH_O_MACHINES[head.readUInt32LE(4)]
    return machine === undefined ? null : `darwin-${machine}`
  }
  const machine = ELF_MACHINES[head.readUInt16LE(18)]
  if (head.readUInt32BE(0) !== ELF || machine === undefined) return null
  return `linux-${machine}${interpreterOf(head).includes('ld-musl-') ? '-musl' : ''}`
}

/** Returns the name of the loader of a 64-bit little-endian ELF file; empty without one. */
function interpreterOf(head: Buffer): string {
  const [table, size, count] = [
    Number(head.readBigUInt64LE(32)),
    head.readUInt16LE(54),
    head.readUInt16LE(56),
  ]
  for (let i = 0; i < count; i++) {
    const at = table + i * size
    if (at + 40 > head.length || head.readUInt32LE(at) !== PT_INTERP) continue
    const start = Number(head.readBigUInt64LE(at + 8))
    return head.toString('latin1', start, start + Number(head.readBigUInt64LE(at + 32)))
  }
  return ''
}

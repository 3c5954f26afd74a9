/** Readings of the files of a Product root and a state directory: modes, digests, leftovers. */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { System } from '../../../system/system.ts'
import type {
  PathDefect,
  PermissionsReading,
  Reading,
  SampleReading,
  TemporaryReading,
} from '../readings.ts'
import { skip } from '../readings.ts'
import { inSteps, pause } from './steps.ts'

/** Entries whose modes are looked at in one directory with all below it. */
const ENTRIES_MAX = 20_000
const READ_BYTES = 1024 * 1024
const HOUR_MILLIS = 3_600_000

export interface SampleBounds {
  readonly filesMax: number
  readonly bytesMax: number
}

interface Entry {
  readonly path: string
  readonly isDirectory: boolean
}

/** Lists at most `max` entries below a directory; those that vanish meanwhile are left out. */
async function entriesBelow(directory: string, max: number): Promise<readonly Entry[]> {
  const found: Entry[] = []
  const directories = [directory]
  for (let at = directories.shift(); at !== undefined; at = directories.shift()) {
    for (const entry of await readdirOf(at)) {
      if (found.length >= max) return found
      const path = join(at, entry.name)
      found.push({ path, isDirectory: entry.isDirectory() })
      if (entry.isDirectory()) directories.push(path)
    }
  }
  return found
}

async function readdirOf(path: string) {
  try {
    return await readdir(path, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export interface PermissionRule {
  /** True if the entries of directories below are looked at too. */
  readonly deep: boolean
  /** Returns true for a file that others may read. They may write no file. */
  readonly isShared: (path: string) => boolean
  /** Names of the entries that are looked at; all by default. */
  readonly only?: (name: string) => boolean
}

/**
 * Looks at a directory and its entries. Directories inside a root are protected by the root itself,
 * so they may be readable, but not writable, for others.
 */
export async function readPermissions(
  directory: string,
  { deep, isShared, only = () => true }: PermissionRule,
): Promise<PermissionsReading> {
  const entries = deep
    ? await entriesBelow(directory, ENTRIES_MAX)
    : (await readdirOf(directory))
        .filter(({ name }) => only(name))
        .map((entry) => ({
          path: join(directory, entry.name),
          isDirectory: entry.isDirectory(),
        }))
  const defects: PathDefect[] = []
  await inSteps([{ path: directory, isDirectory: true }, ...entries], (entry) => {
    const defect = defectOf(entry, isShared(entry.path))
    if (defect !== null) defects.push({ path: entry.path, defect })
  })
  return {
    directory,
    defects,
    looked: entries.length + 1,
    isPartial: deep && entries.length >= ENTRIES_MAX,
  }
}

function defectOf({ path, isDirectory }: Entry, isShared: boolean): PathDefect['defect'] | null {
  const user = process.geteuid?.()
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // It vanished, or the platform has no owners.
  if (stats === undefined || user === undefined) return null
  if (stats.isSymbolicLink()) return 'kind'
  if (stats.uid !== user) return 'owner'
  const forbidden = isDirectory || isShared ? 0o022 : 0o077
  return (stats.mode & forbidden) === 0 ? null : 'mode'
}

/** Finds files of unfinished writes that are older than an hour. */
export async function readTemporary(
  root: string,
  stateDirectory: string,
  system: System,
): Promise<TemporaryReading> {
  const places = [root, join(root, 'logs'), join(stateDirectory, 'bootstrap')]
  const written = await Promise.all(
    places.map(async (place) =>
      (await readdirOf(place))
        .filter(({ name }) => /\.tmp$|\.copy$|\.code\.next$/.test(name))
        .map(({ name }) => join(place, name)),
    ),
  )
  const staged = await Promise.all(
    [join(root, 'artifacts/temporary'), join(root, 'files/temporary')].map(async (place) =>
      (await readdirOf(place)).map(({ name }) => join(place, name)),
    ),
  )
  return { left: await olderThanAnHour([...written, ...staged].flat(), system) }
}

/**
 * Compares a random sample of `<directory>/<2>/<62>` with the digests that are their names. Needs
 * no lock: such a file never changes.
 */
export async function readSample(
  directory: string,
  { filesMax, bytesMax }: SampleBounds,
  system: System,
): Promise<Reading<SampleReading>> {
  if (!existsSync(directory)) return skip('there are no such files yet')
  const { paths, isPartial } = await listContents(directory)
  const rest = [...paths]
  const damaged: string[] = []
  let [checked, bytes] = [0, 0]
  while (rest.length > 0 && checked < filesMax && bytes < bytesMax) {
    const [path] = rest.splice(randomBelow(rest.length, system), 1) as [string]
    const found = await digestOf(path)
    if (found === null) continue
    checked += 1
    bytes += found.bytes
    if (found.digest !== digestName(path)) damaged.push(digestName(path))
  }
  return { value: { checked, bytes, total: paths.length, isPartial, damaged } }
}

export interface Contents {
  /** The paths of files whose names are digests. */
  readonly paths: readonly string[]
  /** True if there may be more than were listed. */
  readonly isPartial: boolean
}

/** Lists the files of `<directory>/<2>/<62>`, as far as 20,000 entries reach. */
export async function listContents(directory: string): Promise<Contents> {
  const entries = await entriesBelow(directory, ENTRIES_MAX)
  const paths = entries.map(({ path }) => path).filter(isDigest)
  return { paths, isPartial: entries.length >= ENTRIES_MAX }
}

/**
 * Counts the contents that nothing uses. New ones do not count: their bytes are stored before what
 * uses them is committed.
 */
export async function countOrphans(
  { paths }: Contents,
  isUsed: (sha256: string) => boolean,
  system: System,
): Promise<number> {
  const unused = paths.filter((path) => !isUsed(digestName(path)))
  return (await olderThanAnHour(unused, system)).length
}

async function olderThanAnHour(paths: readonly string[], system: System): Promise<string[]> {
  const before = system.nowMillis() - HOUR_MILLIS
  const older: string[] = []
  await inSteps(paths, (path) => {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats !== undefined && stats.mtimeMs < before) older.push(path)
  })
  return older
}

function digestName(path: string): string {
  return path.slice(-65).replace('/', '')
}

function isDigest(path: string): boolean {
  return /[\\/][0-9a-f]{2}[\\/][0-9a-f]{62}$/.test(path)
}

function randomBelow(count: number, system: System): number {
  const [a = 0, b = 0, c = 0, d = 0] = system.randomBytes(4)
  return Math.floor(((((a * 256 + b) * 256 + c) * 256 + d) / 2 ** 32) * count)
}

/** Returns null for a file that was removed meanwhile. */
export async function digestOf(
  path: string,
): Promise<{ readonly digest: string; readonly bytes: number } | null> {
  const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (handle === null) return null
  try {
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(READ_BYTES)
    for (let bytes = 0; ; ) {
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, null)
      if (bytesRead === 0) return { digest: hash.digest('hex'), bytes }
      hash.update(buffer.subarray(0, bytesRead))
      bytes += bytesRead
      await pause()
    }
  } finally {
    await handle.close()
  }
}

/** Names of files that were set aside as damaged. */
export async function readQuarantined(root: string): Promise<readonly string[]> {
  return (await readdirOf(join(root, 'files/damaged'))).map(({ name }) => name)
}

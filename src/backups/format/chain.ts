/** The segments of one history: their files, and the chain of their sidecars. */
import type { Fault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { BackupId, EnvironmentId, HistoryId } from '../../value/ids.ts'
import { isId } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { formatSidecar, parseSidecar, type Sidecar } from '../../wire/files/backups.ts'
import type { BackupFiles, BackupTarget } from '../targets/targets.ts'
import { collect } from './age-files.ts'
import { corrupt, type SealedSegment, segmentName } from './segments.ts'

export interface HistoryAddress {
  readonly environmentId: EnvironmentId
  readonly historyId: HistoryId
}

/** The increments at the end of a chain (docs/backups-format.md). */
export interface Run {
  readonly from: number
  readonly to: number
  readonly files: number
}

/** The end of a chain: what the next segment continues. */
export interface ChainEnd {
  /** 0 before the first segment. */
  readonly number: number
  /** SHA-256 of the sidecar with that number; null before the first segment. */
  readonly digest: string | null
  /** The number of the newest base; null if there is none. */
  readonly base: number | null
  /** Null before the first segment. */
  readonly run: Run | null
}

/** A whole backup, and the increments after it. */
export interface SelectedBackup extends HistoryAddress {
  readonly backupId: BackupId
  /** Every segment from its first part on, in order. Some belong to other backups. */
  readonly segments: readonly Sidecar[]
  readonly base: Sidecar
}

const SIDECAR = /^([0-9]{12})\.json$/
/** The directory of up to 1,000 segments: their numbers without the last three digits. */
const THOUSAND = /^[0-9]{9}$/
const SHARED_DIGITS = 3
/** Bytes of the longest sidecar: each of its fields is bounded. */
const SIDECAR_BYTES_MAX = 2_048
/** Sidecars that are read at the same time. An hour of increments has thousands. */
const SIDECARS_AT_ONCE = 16

export function directoryOf({ environmentId, historyId }: HistoryAddress): string {
  return `${environmentId}/${historyId}`
}

/** The path of the encrypted bytes of a file or an artifact. */
export function blobPath(address: HistoryAddress, name: string): string {
  return `${blobDirectory(address, name.slice(0, 2))}/${name}.age`
}

/** The directory of the blobs whose names begin with two digits. */
export function blobDirectory(address: HistoryAddress, digits: string): string {
  return `${directoryOf(address)}/blobs/${digits}`
}

/** The path of a segment, without the ending of its files. */
export function segmentPath(address: HistoryAddress, number: number): string {
  const name = segmentName(number)
  return `${directoryOf(address)}/${name.slice(0, -SHARED_DIGITS)}/${name}`
}

/** Returns the numbers of the oldest and of the newest sidecar; null if there is none. */
export async function segmentBounds(
  target: BackupFiles,
  address: HistoryAddress,
): Promise<{ readonly oldest: number; readonly newest: number } | null> {
  const names = await target.names(directoryOf(address))
  const directories = names.filter((name) => THOUSAND.test(name))
  const oldest = await firstSidecar(target, address, directories)
  const newest = await firstSidecar(target, address, directories.reverse(), -1)
  return oldest === null || newest === null ? null : { oldest, newest }
}

/** Returns the number of the sidecar at this index of the first directory that has one. */
async function firstSidecar(
  target: BackupFiles,
  address: HistoryAddress,
  directories: readonly string[],
  index = 0,
): Promise<number | null> {
  for (const directory of directories) {
    const names = await target.names(`${directoryOf(address)}/${directory}`)
    const number = names.flatMap((name) => SIDECAR.exec(name)?.[1] ?? []).at(index)
    if (number !== undefined) return Number(number)
  }
  return null
}

/** Returns the histories of an Environment, the oldest first. Raises UNAVAILABLE. */
export async function listHistories(
  target: BackupFiles,
  environmentId: EnvironmentId,
): Promise<HistoryId[]> {
  const names = await target.names(environmentId)
  return names.filter((name): name is HistoryId => isId('hst', name))
}

/** Returns the Environments that have backups. Raises UNAVAILABLE. */
export async function listEnvironments(target: BackupFiles): Promise<EnvironmentId[]> {
  const names = await target.names('')
  return names.filter((name): name is EnvironmentId => isId('env', name))
}

/** Writes the files of a segment, the sidecar as the last one. Raises UNAVAILABLE. */
export async function appendSegment(
  target: BackupTarget,
  { sidecar, file, blobs }: SealedSegment,
): Promise<ChainEnd> {
  const path = segmentPath(addressOf(sidecar), sidecar.number)
  await target.write(`${path}.age`, [file])
  if (blobs !== null) await target.write(`${path}.blobs`, [Buffer.from(blobs)])
  const text = formatSidecar(sidecar)
  await target.write(`${path}.json`, [Buffer.from(text)])
  return endOf(sidecar, sha256Hex(text))
}

/** Returns the end of the chain of a history. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function findChainEnd(
  target: BackupFiles,
  address: HistoryAddress,
): Promise<ChainEnd> {
  const bounds = await segmentBounds(target, address)
  if (bounds === null) return { number: 0, digest: null, base: null, run: null }
  const { sidecar, digest } = await readSidecar(target, address, bounds.newest)
  return endOf(sidecar, digest)
}

function endOf(sidecar: Sidecar, digest: string): ChainEnd {
  return {
    number: sidecar.number,
    digest,
    base: sidecar.kind === 'base' ? sidecar.number : sidecar.previousBase,
    run: { from: sidecar.runFrom, to: sidecar.runTo, files: sidecar.runFiles },
  }
}

/** Reads a sidecar, which must be the one of this place. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function readSidecar(
  target: BackupFiles,
  address: HistoryAddress,
  number: number,
): Promise<{ readonly sidecar: Sidecar; readonly digest: string }> {
  const path = `${segmentPath(address, number)}.json`
  const size = await target.sizeOf(path)
  if (size === null) throw corrupt(path, 'it is missing')
  if (size > SIDECAR_BYTES_MAX) throw corrupt(path, 'it is too long')
  const bytes = await collect(target.read(path))
  try {
    const sidecar = parseSidecar(bytes)
    const { environmentId, historyId } = sidecar
    if (sidecar.number !== number) throw new ValidationError('the number of its name', '$.number')
    if ((sidecar.previousBase ?? 0) >= number) {
      throw new ValidationError('a number before', '$.previousBase')
    }
    if (environmentId !== address.environmentId || historyId !== address.historyId) {
      throw new ValidationError('the IDs of its directory')
    }
    return { sidecar, digest: sha256Hex(bytes) }
  } catch (error) {
    if (error instanceof ValidationError) throw corrupt(path, error.message, error)
    throw error
  }
}

/**
 * Yields the last segments of the whole backups of a history, the newest first. Raises
 * BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function* listBases(
  target: BackupFiles,
  address: HistoryAddress,
): AsyncGenerator<Sidecar> {
  const bounds = await segmentBounds(target, address)
  if (bounds === null) return
  // Retention removes the oldest segments first.
  for await (const base of followBases(target, address, bounds.newest)) {
    if (base.first < bounds.oldest) return
    yield base
    if (base.previousBase !== null && base.previousBase < bounds.oldest) return
  }
}

/**
 * Yields the bases up to the segment with this number, the newest first, each as the one after it
 * names it. 0 stands for no segment.
 */
async function* followBases(
  target: BackupFiles,
  address: HistoryAddress,
  newest: number,
): AsyncGenerator<Sidecar> {
  for (let number = newest; number > 0; ) {
    const { sidecar } = await readSidecar(target, address, number)
    if (sidecar.kind === 'base') yield sidecar
    else if (number !== newest) throw notBase(address, number)
    number = sidecar.previousBase ?? 0
  }
}

/**
 * Yields these segments in their order, and checks that each follows the one before it. Raises
 * BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function* readSidecars(
  target: BackupFiles,
  address: HistoryAddress,
  { first, last }: { readonly first: number; readonly last: number },
): AsyncGenerator<Sidecar> {
  let end: ChainEnd | null = null
  for (let from = first; from <= last; from += SIDECARS_AT_ONCE) {
    const count = Math.min(SIDECARS_AT_ONCE, last - from + 1)
    const reads = Array.from({ length: count }, (_, i) => readSidecar(target, address, from + i))
    for (const { sidecar, digest } of await Promise.all(reads)) {
      const path = `${segmentPath(address, sidecar.number)}.json`
      if (end !== null && end.digest !== sidecar.previous) {
        throw corrupt(path, 'it follows another segment than the one before it')
      }
      if (end !== null && end.base !== sidecar.previousBase) throw notBase(address, sidecar.number)
      yield sidecar
      end = endOf(sidecar, digest)
    }
  }
}

/**
 * Returns the segments of the newest whole backup that `isWanted` accepts, up to the end of the
 * history. Checks that the chain has each of them. Raises BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function selectBackup(
  target: BackupFiles,
  address: HistoryAddress,
  isWanted: (base: Sidecar) => boolean = () => true,
): Promise<SelectedBackup> {
  const { oldest, newest: last } = (await segmentBounds(target, address)) ?? {
    oldest: 0,
    newest: 0,
  }
  for await (const base of followBases(target, address, last)) {
    if (!isWanted(base)) {
      // Retention has removed the bases before it.
      if (base.previousBase !== null && base.previousBase < oldest) break
      continue
    }
    const range = { first: base.first, last }
    const segments: Sidecar[] = []
    for await (const sidecar of readSidecars(target, address, range)) segments.push(sidecar)
    checkParts(address, base, segments)
    return { ...address, backupId: base.backupId as BackupId, segments, base }
  }
  throw corrupt(directoryOf(address), 'it has no whole backup')
}

export interface JoinedIncrements {
  /** Increments and catch-ups in their order, each of which begins where the backup has all. */
  readonly increments: readonly Sidecar[]
  /** The newest sequence that can be restored. */
  readonly toSequence: number
}

/** Returns the increments that join up with the base of a backup, up to the first gap. */
export function joinIncrements({ base, segments }: SelectedBackup): JoinedIncrements {
  const increments: Sidecar[] = []
  let toSequence = base.toSequence
  for (const segment of segments) {
    if (segment.kind !== 'increment' && segment.kind !== 'catchup') continue
    if (segment.fromSequence > toSequence) break
    increments.push(segment)
    toSequence = Math.max(toSequence, segment.toSequence)
  }
  return { increments, toSequence }
}

/** Checks that the first segment is the first part of the backup, and the base its last one. */
function checkParts(address: HistoryAddress, base: Sidecar, segments: readonly Sidecar[]): void {
  const first = segments[0]!
  const isFirst = first.number === base.first && first.backupId === base.backupId
  const isPart = first.kind === 'part' || first.kind === 'base'
  if (isFirst && isPart && first.number > 1 === (first.previous !== null)) return
  throw corrupt(segmentPath(address, base.first), 'it is not the first part of its backup')
}

function notBase(address: HistoryAddress, number: number): Fault {
  const path = `${segmentPath(address, number)}.json`
  return corrupt(path, 'the base before it is not the one that it names')
}

export function addressOf({ environmentId, historyId }: HistoryAddress): HistoryAddress {
  return { environmentId, historyId }
}

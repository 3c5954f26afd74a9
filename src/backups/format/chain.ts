/** The segments of one history: their files, and the chain of their sidecars. */
import { sha256Hex } from '../../system/digests.ts'
import type { BackupId, EnvironmentId, HistoryId } from '../../value/ids.ts'
import { isId } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { formatSidecar, parseSidecar, type Sidecar } from '../../wire/files/backups.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { collect } from './age-files.ts'
import { corrupt, type SealedSegment, segmentName } from './segments.ts'

export interface HistoryAddress {
  readonly environmentId: EnvironmentId
  readonly historyId: HistoryId
}

/** The end of a chain: what the next segment continues. */
export interface ChainEnd {
  /** 0 before the first segment. */
  readonly number: number
  /** SHA-256 of the sidecar with that number; null before the first segment. */
  readonly digest: string | null
}

/** A whole backup, and the increments after it. */
export interface SelectedBackup extends HistoryAddress {
  readonly backupId: BackupId
  /** Every segment from its first part on, in order. Some belong to other backups. */
  readonly segments: readonly Sidecar[]
  readonly base: Sidecar
}

const SIDECAR = /^([0-9]{12})\.json$/
/** Bytes of the longest sidecar: each of its fields is bounded. */
const SIDECAR_BYTES_MAX = 2_048

export function directoryOf({ environmentId, historyId }: HistoryAddress): string {
  return `${environmentId}/${historyId}`
}

/** The path of the encrypted bytes of a file or an artifact. */
export function blobPath(address: HistoryAddress, name: string): string {
  return `${directoryOf(address)}/blobs/${name}.age`
}

export function segmentPath(address: HistoryAddress, number: number): string {
  return `${directoryOf(address)}/${segmentName(number)}`
}

/** Returns the numbers of the sidecars of a history, ascending. Raises UNAVAILABLE. */
export async function listSegments(
  target: BackupTarget,
  address: HistoryAddress,
): Promise<number[]> {
  const names = await target.names(directoryOf(address))
  return names.flatMap((name) => {
    const number = SIDECAR.exec(name)?.[1]
    return number === undefined ? [] : [Number(number)]
  })
}

/** Returns the histories of an Environment, the oldest first. Raises UNAVAILABLE. */
export async function listHistories(
  target: BackupTarget,
  environmentId: EnvironmentId,
): Promise<HistoryId[]> {
  const names = await target.names(environmentId)
  return names.filter((name): name is HistoryId => isId('hst', name))
}

/** Returns the Environments that have backups. Raises UNAVAILABLE. */
export async function listEnvironments(target: BackupTarget): Promise<EnvironmentId[]> {
  const names = await target.names('')
  return names.filter((name): name is EnvironmentId => isId('env', name))
}

/** Writes the file, then the sidecar that makes it a part of the history. Raises UNAVAILABLE. */
export async function appendSegment(
  target: BackupTarget,
  { sidecar, file }: SealedSegment,
): Promise<ChainEnd> {
  const path = segmentPath(addressOf(sidecar), sidecar.number)
  await target.write(`${path}.age`, [file])
  const text = formatSidecar(sidecar)
  await target.write(`${path}.json`, [Buffer.from(text)])
  return { number: sidecar.number, digest: sha256Hex(text) }
}

/** Returns the end of the chain of a history. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function findChainEnd(
  target: BackupTarget,
  address: HistoryAddress,
): Promise<ChainEnd> {
  const number = (await listSegments(target, address)).at(-1)
  if (number === undefined) return { number: 0, digest: null }
  return { number, digest: (await readSidecar(target, address, number)).digest }
}

/** Reads a sidecar, which must be the one of this place. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function readSidecar(
  target: BackupTarget,
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
 * Returns the segments of the newest whole backup of a history, or of the one with this ID, up to
 * the end of the history. Checks that the chain has each of them. Raises BACKUP_CORRUPT, and
 * UNAVAILABLE.
 */
export async function selectBackup(
  target: BackupTarget,
  address: HistoryAddress,
  backupId?: BackupId,
): Promise<SelectedBackup> {
  const numbers = await listSegments(target, address)
  const segments: Sidecar[] = []
  let base: Sidecar | null = null
  let expected = numbers.at(-1) ?? 0
  let previous: string | null | undefined
  // From the end: the backup begins with the first part that its base names.
  while (expected >= (base?.first ?? 1)) {
    const { sidecar, digest } = await readSidecar(target, address, expected)
    if (previous !== undefined && previous !== digest) {
      throw corrupt(`${segmentPath(address, expected)}.json`, 'the next segment follows another')
    }
    segments.push(sidecar)
    const isWanted = backupId === undefined || sidecar.backupId === backupId
    if (base === null && sidecar.kind === 'base' && isWanted) base = sidecar
    previous = sidecar.previous
    expected -= 1
  }
  if (base === null) throw corrupt(directoryOf(address), 'it has no whole backup')
  segments.reverse()
  checkParts(address, base, segments)
  return { ...address, backupId: base.backupId as BackupId, segments, base }
}

/** Checks that the first segment is the first part of the backup. */
function checkParts(address: HistoryAddress, base: Sidecar, segments: readonly Sidecar[]): void {
  const first = segments[0]!
  const isFirst = first.number === base.first && first.backupId === base.backupId
  if (isFirst && first.kind !== 'increment' && first.number > 1 === (first.previous !== null)) {
    return
  }
  throw corrupt(segmentPath(address, base.first), 'it is not the first part of its backup')
}

export function addressOf({ environmentId, historyId }: HistoryAddress): HistoryAddress {
  return { environmentId, historyId }
}

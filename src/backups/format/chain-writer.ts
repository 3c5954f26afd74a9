/**
 * Appends the segments of one history, one after the other: parts of a base and increments are
 * written at the same time and share one chain.
 */
import { isFault } from '../../errors/fault.ts'
import { SerialQueue } from '../../system/concurrency.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { BackupId } from '../../value/ids.ts'
import { BACKUP_FORMAT, formatSidecar, type Sidecar } from '../../wire/files/backups.ts'
import type { BackupTarget } from '../targets/targets.ts'
import type { Sealer } from './age-files.ts'
import {
  appendSegment,
  type ChainEnd,
  findChainEnd,
  type HistoryAddress,
  type Run,
  readSidecar,
  segmentPath,
} from './chain.ts'
import { corrupt, type SealedSegment, sealSegment } from './segments.ts'

export interface NewSegment {
  readonly kind: Sidecar['kind']
  readonly backupId: BackupId | null
  /** The number of the first part of the backup; null for a segment that is the first itself. */
  readonly first: number | null
  readonly fromSequence: number
  readonly toSequence: number
  readonly run: Run
  readonly atMicros: bigint
  /** The records, each with its line feed. */
  readonly lines: Uint8Array
  /** Names of the blobs that the records name, which the target has. */
  readonly names: Iterable<string>
}

export interface ChainWriterOptions {
  readonly target: BackupTarget
  readonly sealer: Sealer
  readonly address: HistoryAddress
}

export class ChainWriter {
  readonly #options: ChainWriterOptions
  readonly #queue = new SerialQueue(1, 'BUSY')
  #end: ChainEnd
  /** The file system that had the chain when it was opened; undefined for a store without. */
  readonly #fileSystem: number | undefined
  #isForeign = false
  /** The segment whose writing failed: the target may have it, a part of it or nothing. */
  #unfinished: SealedSegment | null = null

  private constructor(options: ChainWriterOptions, end: ChainEnd, fileSystem: number | undefined) {
    this.#options = options
    this.#end = end
    this.#fileSystem = fileSystem
  }

  /** Continues the history where the target ends. Raises BACKUP_CORRUPT and UNAVAILABLE. */
  static async open(options: ChainWriterOptions): Promise<ChainWriter> {
    const { target, address } = options
    // First: a mount right after it is noticed, as the chain is another one then.
    const [fileSystem] = (await target.fileSystems?.()) ?? []
    return new ChainWriter(options, await findChainEnd(target, address), fileSystem)
  }

  /**
   * Returns whether a file system was mounted over the one that has the chain, and does not have
   * it: the backup continues in the mounted one. It does not continue where the mount of the chain
   * is gone, since what is below a mount point is on another disk than the operator chose. Raises
   * UNAVAILABLE.
   */
  async isCovered(): Promise<boolean> {
    return this.#isForeign && (await this.place()) === 'covered'
  }

  /**
   * Returns which file system is in the place of the one that had the chain when it was opened: the
   * same, one that is mounted over it, or another one. Raises UNAVAILABLE.
   */
  async place(): Promise<'same' | 'covered' | 'replaced'> {
    if (this.#fileSystem === undefined) return 'same'
    const [current, ...outer] = (await this.#options.target.fileSystems?.()) ?? []
    if (current === this.#fileSystem) return 'same'
    return outer.includes(this.#fileSystem) ? 'covered' : 'replaced'
  }

  get end(): ChainEnd {
    return this.#end
  }

  /**
   * Writes a segment. Raises UNAVAILABLE, after which the chain may have the segment or not, and
   * BACKUP_CORRUPT where the target has another chain than the one that was written.
   */
  append(segment: NewSegment): Promise<Sidecar> {
    return this.#queue.runUnbounded(async () => {
      await this.#requireOwnEnd()
      if (this.#unfinished !== null) await this.#write(this.#unfinished)
      const sealed = await this.#seal(segment)
      await this.#write(sealed)
      return sealed.sidecar
    })
  }

  /**
   * A segment that failed is written again before any other one: the bytes of two segments with the
   * same number would be mixed.
   */
  async #write(sealed: SealedSegment): Promise<void> {
    this.#unfinished = sealed
    this.#end = await appendSegment(this.#options.target, sealed)
    this.#unfinished = null
  }

  async #requireOwnEnd(): Promise<void> {
    try {
      await this.#checkEnd()
      this.#isForeign = false
    } catch (error) {
      this.#isForeign = isFault(error, 'BACKUP_CORRUPT')
      throw error
    }
  }

  /** Checks that the chain ends as it was written: another disk may be mounted by now. */
  async #checkEnd(): Promise<void> {
    const { target, address } = this.#options
    const { number, digest } = this.#end
    const isOwn = async (at: number, expected: string | null) =>
      (await readSidecar(target, address, at)).digest === expected
    const path = (at: number) => `${segmentPath(address, at)}.json`
    const foreign = (at: number) => corrupt(path(at), 'another program wrote it')
    if (number > 0 && !(await isOwn(number, digest))) throw foreign(number)
    const next = number + 1
    if ((await target.sizeOf(path(next))) === null) return
    const unfinished = this.#unfinished && sha256Hex(formatSidecar(this.#unfinished.sidecar))
    if (!(await isOwn(next, unfinished))) throw foreign(next)
  }

  #seal(segment: NewSegment): Promise<SealedSegment> {
    const { sealer, address } = this.#options
    const { kind, backupId, fromSequence, toSequence, run, atMicros, lines, names } = segment
    const { number: before, digest, base } = this.#end
    const { environmentId, historyId } = address
    const number = before + 1
    const plain = {
      format: BACKUP_FORMAT,
      environmentId,
      historyId,
      number,
      kind,
      backupId,
      first: segment.first ?? number,
      previous: digest,
      previousBase: base,
      fromSequence,
      toSequence,
      runFrom: run.from,
      runTo: run.to,
      runFiles: run.files,
      atMicros: String(atMicros),
    } as const
    return sealSegment(sealer, plain, { lines, names })
  }
}

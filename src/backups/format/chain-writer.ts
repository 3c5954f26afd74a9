/**
 * Appends the segments of one history, one after the other: parts of a base and increments are
 * written at the same time and share one chain.
 */
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
  /** The segment whose writing failed: the target may have it or not. */
  #uncertain: SealedSegment | null = null

  private constructor(options: ChainWriterOptions, end: ChainEnd) {
    this.#options = options
    this.#end = end
  }

  /** Continues the history where the target ends. Raises BACKUP_CORRUPT and UNAVAILABLE. */
  static async open(options: ChainWriterOptions): Promise<ChainWriter> {
    return new ChainWriter(options, await findChainEnd(options.target, options.address))
  }

  get end(): ChainEnd {
    return this.#end
  }

  /**
   * Writes a segment. Raises UNAVAILABLE, after which the chain may have the segment or not, and
   * BACKUP_CORRUPT where another program has continued the chain.
   */
  append(segment: NewSegment): Promise<Sidecar> {
    return this.#queue.runUnbounded(async () => {
      await this.#checkEnd()
      const sealed = await this.#seal(segment)
      this.#uncertain = sealed
      this.#end = await appendSegment(this.#options.target, sealed)
      this.#uncertain = null
      return sealed.sidecar
    })
  }

  /** Checks that nothing continues the chain but the segment whose writing failed. */
  async #checkEnd(): Promise<void> {
    const { target, address } = this.#options
    const number = this.#end.number + 1
    const path = `${segmentPath(address, number)}.json`
    if ((await target.sizeOf(path)) === null) return
    const { digest } = await readSidecar(target, address, number)
    const expected = this.#uncertain && sha256Hex(formatSidecar(this.#uncertain.sidecar))
    if (digest !== expected) throw corrupt(path, 'another program wrote it')
    this.#end = await findChainEnd(target, address)
    this.#uncertain = null
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

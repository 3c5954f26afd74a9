/**
 * Rehearses a restore once a week: the newest backup in the target is restored into a temporary
 * directory by another process, which compares what the restored documents are. How the last one
 * ended is kept in a file of the Product root, over restarts.
 */
import { existsSync, readFileSync } from 'node:fs'
import type { Code } from '../../errors/codes.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { writeFileAtomic } from '../../system/files.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { HistoryId } from '../../value/ids.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { formatRehearsal, parseRehearsal, type RehearsalFile } from '../../wire/files/rehearsals.ts'

export interface RehearsedBackup {
  readonly sequence: number
  readonly documents: number
  /** The root of the Merkle tree of the restored documents, which is that of the backup. */
  readonly merkle: string
}

export interface RehearsalsOptions {
  readonly system: Pick<System, 'nowMicros' | 'monotonicMillis'>
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'counters' | 'addSource'>
  /** The file that keeps how the last rehearsal ended. */
  readonly path: string
  /** Returns the history that has a whole backup in the target; null while there is none. */
  backedUpHistory(): HistoryId | null
  /** Restores the newest state. Rejects with its failure, and with the reason of the signal. */
  rehearse(historyId: HistoryId, signal: AbortSignal): Promise<RehearsedBackup>
  /** Milliseconds between two looks at what is due. Tests call `check`. */
  readonly checkMillis?: number
}

export const REHEARSAL_INTERVAL_MILLIS = 7 * 86_400_000
/** A backup that was rejected is tried again a day later, and what prevented a try in an hour. */
const REJECTED_RETRY_MILLIS = 86_400_000
const FAILED_RETRY_MILLIS = 3_600_000
const CHECK_MILLIS = 60_000
/**
 * A restore that takes longer cannot be what an operator plans with.
 * @limit Backups: time of a rehearsal
 */
export const REHEARSAL_MILLIS_MAX = 12 * 3_600 * 1_000
/** Bytes of the file. */
const FILE_BYTES_MAX = 4_096

export class Rehearsals {
  readonly #options: RehearsalsOptions
  readonly #stopping = new AbortController()
  readonly #timer: ReturnType<typeof setInterval>
  #last: RehearsalFile | null
  #running: Promise<void> | null = null

  constructor(options: RehearsalsOptions) {
    this.#options = options
    this.#last = readRehearsal(options.path)
    const { checkMillis = CHECK_MILLIS, metrics } = options
    metrics.addSource(() => this.#gauges())
    this.#timer = setInterval(() => void this.check(), checkMillis)
    this.#timer.unref()
  }

  /** The end of the last rehearsal; null before the first one. */
  get last(): RehearsalFile | null {
    return this.#last
  }

  /** Rehearses if it is due. Resolves when no rehearsal runs. Never rejects. */
  async check(): Promise<void> {
    const historyId = this.#options.backedUpHistory()
    if (historyId !== null && this.#isDue() && !this.#stopping.signal.aborted) {
      this.#running ??= this.#run(historyId).finally(() => {
        this.#running = null
      })
    }
    await this.#running
  }

  /** Ends a rehearsal in progress, whose result is not kept. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#stopping.abort(new Fault('UNAVAILABLE', { detail: 'the server stops' }))
    await this.#running
  }

  #isDue(): boolean {
    if (this.#last === null) return true
    const { failureCode, finishedAtMicros } = this.#last
    const now = this.#options.system.nowMicros()
    return now - BigInt(finishedAtMicros) >= BigInt(pauseAfter(failureCode)) * 1_000n
  }

  async #run(historyId: HistoryId): Promise<void> {
    const { system, log, metrics, rehearse } = this.#options
    const begun = system.monotonicMillis()
    const late = AbortSignal.timeout(REHEARSAL_MILLIS_MAX)
    const signal = AbortSignal.any([this.#stopping.signal, late])
    try {
      const { sequence, documents, merkle } = await rehearse(historyId, signal)
      const at = String(system.nowMicros())
      const found = { sequence, documents, merkle, failureCode: null, passedAtMicros: at }
      this.#keep({ version: 1, historyId, finishedAtMicros: at, ...found })
      metrics.counters.backupRehearsals.add()
      const millis = Math.round(system.monotonicMillis() - begun)
      const message = `The backup was restored to sequence ${sequence} and compared.`
      log.info('backup.rehearsed', { message, historyId, sequence, documents, millis })
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      this.#fail(historyId, error)
    }
  }

  #fail(historyId: HistoryId, error: unknown): void {
    const { system, log, metrics } = this.#options
    const errorCode: Code = isFault(error) ? error.code : 'INTERNAL'
    const detail = isFault(error) ? error.detail : undefined
    metrics.counters.backupRehearsalFailures.add()
    const message = 'The backup could not be restored in a rehearsal.'
    const cause = isFault(error) ? error.cause : error
    log.error('backup.rehearsal_failed', { message, historyId, errorCode, detail, error: cause })
    this.#keep({
      version: 1,
      historyId,
      finishedAtMicros: String(system.nowMicros()),
      failureCode: errorCode,
      sequence: null,
      documents: null,
      merkle: null,
      passedAtMicros: this.#last?.passedAtMicros ?? null,
    })
  }

  #keep(rehearsal: RehearsalFile): void {
    this.#last = rehearsal
    try {
      writeFileAtomic(this.#options.path, formatRehearsal(rehearsal))
    } catch (error) {
      // The next start rehearses again.
      const message = 'The result of the rehearsal is not kept over a restart.'
      this.#options.log.warn('backup.rehearsal_unrecorded', { message, error })
    }
  }

  #gauges() {
    const passed = this.#last?.passedAtMicros ?? null
    if (passed === null) return {}
    const age = this.#options.system.nowMicros() - BigInt(passed)
    return { backupRehearsalAgeMicros: Math.max(0, Number(age)) }
  }
}

function pauseAfter(failureCode: string | null): number {
  if (failureCode === null) return REHEARSAL_INTERVAL_MILLIS
  return failureCode === 'BACKUP_CORRUPT' || failureCode === 'PRODUCT_CORRUPT'
    ? REJECTED_RETRY_MILLIS
    : FAILED_RETRY_MILLIS
}

/** Returns null without a file, and for one that is not valid: nothing is known then. */
export function readRehearsal(path: string): RehearsalFile | null {
  try {
    if (!existsSync(path)) return null
    const bytes = readFileSync(path)
    return bytes.length > FILE_BYTES_MAX ? null : parseRehearsal(bytes)
  } catch (error) {
    if (error instanceof ValidationError || error instanceof SyntaxError) return null
    if (typeof (error as NodeJS.ErrnoException).code === 'string') return null
    throw error
  }
}

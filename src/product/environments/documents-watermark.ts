/**
 * The record in control.db of the newest durable sequence of the documents. A document store that
 * ends before it has lost acknowledged changes, for example by a truncated write-ahead log or an
 * older backup.
 */
import type { DocumentStore } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import {
  beginHistory,
  readDocumentsSequence,
  recordDocumentsSequence,
} from '../../storage/control/environment.ts'
import type { ProductRoot } from '../../storage/root.ts'
import { PeriodicSweep } from '../../system/periodic-sweep.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import { appendAudit } from '../audit/audit-outbox.ts'

/**
 * Interval at which the record follows the document store. A loss of only the changes of the last
 * interval goes unnoticed.
 * @limit Storage: how far the record of the newest durable sequence is behind, at most
 */
export const WATERMARK_PERIOD_MILLIS = 1_000

/** The sequence after which all changes may be missing, or `any` loss. */
export type AcceptedLoss = number | 'any'

export interface WatermarkOptions {
  readonly system: System
  readonly log: Logger
  readonly root: Pick<ProductRoot, 'control' | 'descriptor'>
  readonly store: Pick<DocumentStore, 'latestSequence'>
  readonly periodMillis?: number
}

export class DocumentsWatermark {
  readonly #options: WatermarkOptions
  readonly #sweep: PeriodicSweep
  #recorded: number
  #isFailing = false

  /** Throws PRODUCT_UNAVAILABLE or PRODUCT_CORRUPT. */
  constructor(options: WatermarkOptions) {
    this.#options = options
    this.#recorded = options.root.control.read(readDocumentsSequence)
    this.#sweep = new PeriodicSweep({
      periodMillis: options.periodMillis ?? WATERMARK_PERIOD_MILLIS,
      sweep: () => this.#follow(),
      onError: (error) => this.#reportFailure(error),
    })
  }

  /**
   * Throws SERVER_DOCUMENTS_OLDER if the store ends before the record, unless exactly this loss is
   * accepted. An accepted loss is audited, the record is set back to the end of the store, and a
   * new history of backups begins.
   */
  requireNewest(accepted: AcceptedLoss | null): void {
    const { log, store } = this.#options
    const [recorded, sequence] = [this.#recorded, store.latestSequence]
    if (sequence >= recorded) {
      if (typeof accepted === 'number') {
        const message = `The documents miss nothing: start without --accept-loss ${accepted}.`
        log.warn('documents.loss_not_found', { message })
      }
      return
    }
    const detail = `they end at sequence ${sequence}, and ${recorded} was durable`
    if (accepted !== 'any' && accepted !== sequence) {
      throw new Fault('SERVER_DOCUMENTS_OLDER', { detail })
    }
    this.#acceptLoss(sequence)
    log.warn('documents.loss_accepted', { message: `Documents are missing: ${detail}.` })
  }

  start(): void {
    this.#sweep.start()
  }

  /** Records the last sequence of the store. Call it once, after the store was closed. */
  async stop(): Promise<void> {
    await this.#sweep.stop()
    const { root, store } = this.#options
    const sequence = store.latestSequence
    if (sequence === this.#recorded) return
    root.control.transaction((tx) => recordDocumentsSequence(tx, sequence))
  }

  #acceptLoss(sequence: number): void {
    const { system, root } = this.#options
    root.control.transaction((tx) => {
      recordDocumentsSequence(tx, sequence)
      // Other commits get the sequences of the lost ones: backups must never mix the two.
      beginHistory(tx, system.ids.make('hst'))
      appendAudit(tx, system, null, {
        operation: 'product.documents.accept_loss',
        subject: `${root.descriptor.environmentId}:${sequence}:${this.#recorded}`,
        requestId: null,
      })
    })
    this.#recorded = sequence
  }

  async #follow(): Promise<void> {
    const sequence = this.#options.store.latestSequence
    if (sequence === this.#recorded) return
    await this.#options.root.control.writeBehind((tx) => recordDocumentsSequence(tx, sequence))
    this.#recorded = sequence
    this.#isFailing = false
  }

  #reportFailure(error: unknown): void {
    if (this.#isFailing) return
    this.#isFailing = true
    const message = 'The newest sequence of the documents is not recorded; this is retried.'
    this.#options.log.warn('documents.watermark_failed', { error, message })
  }
}

/** Reads of documents in PostgreSQL that another process of the server writes. */
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { Secret } from '../../value/secret.ts'
import { CompactTexts } from '../compact-texts.ts'
import { type DocumentReads, FollowedDocuments } from '../followed-documents.ts'
import type {
  OperationRecord,
  RangeRequest,
  RangeResult,
  StoredDocument,
  StoreSchema,
} from '../store.ts'
import { StoreState } from '../store-state.ts'
import { storeFault } from './failures.ts'
import { Reads } from './reads.ts'
import { documentDatabase } from './schema.ts'

export interface FollowedPostgresOptions {
  readonly url: Secret
  readonly connectionsMax: number
  /** The newest sequence that was announced. */
  readonly latestSequence: number
  readonly schema: StoreSchema
  readonly memory?: MemoryPlan
  readonly onConnectionLost: (detail: string) => void
}

/** Opens the reads. Makes no connection yet. */
export function followPostgresDocuments(options: FollowedPostgresOptions): FollowedDocuments {
  const state = new StoreState(options.latestSequence, '', options.memory)
  const texts = new CompactTexts()
  const reads = new FollowedReads(options, state, texts)
  return new FollowedDocuments({ state, texts, reads }, options.schema)
}

class FollowedReads implements DocumentReads {
  readonly isEmbedded = false
  readonly #state: StoreState
  readonly #database: ReturnType<typeof documentDatabase>
  readonly #reads: Reads

  constructor(options: FollowedPostgresOptions, state: StoreState, texts: CompactTexts) {
    const { url, connectionsMax, onConnectionLost } = options
    this.#state = state
    this.#database = documentDatabase({ url, connectionsMax, onIdleLoss: onConnectionLost })
    this.#reads = new Reads(this.#database, state, texts)
  }

  read(id: string, snapshot: number): Promise<StoredDocument | null> {
    return this.#checked(this.#reads.read(id, snapshot))
  }

  range(request: RangeRequest, table: string): Promise<RangeResult> {
    return this.#checked(this.#reads.range(request, table))
  }

  operation(operationId: string): Promise<OperationRecord | null> {
    return this.#checked(this.#reads.operation(operationId))
  }

  trim(): void {}

  followed(): void {}

  async close(): Promise<void> {
    await this.#database.close()
  }

  async #checked<T>(reading: Promise<T>): Promise<T> {
    try {
      return await reading
    } catch (error) {
      const fault = storeFault(error)
      if (fault.code === 'PRODUCT_CORRUPT') this.#state.fail(fault.detail ?? fault.message)
      throw fault
    }
  }
}

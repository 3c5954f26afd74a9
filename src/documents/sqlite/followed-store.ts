/** Reads of a document file that another process of the server writes. */
import type { Database } from 'bun:sqlite'
import type { Fault } from '../../errors/fault.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
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
import { openFollowedDatabase, storeFault } from './databases.ts'
import { Reads } from './reads.ts'

export interface FollowedSqliteOptions {
  /** The newest sequence that was announced. */
  readonly latestSequence: number
  readonly schema: StoreSchema
  readonly memory?: MemoryPlan
}

/** Opens the reads. Throws UNAVAILABLE. */
export function followSqliteDocuments(
  path: string,
  { latestSequence, schema, memory = DEFAULT_PLAN }: FollowedSqliteOptions,
): FollowedDocuments {
  const database = openFollowedDatabase(path, memory)
  return followOpenDatabase(database, { latestSequence, schema, memory })
}

/** Opens the reads on a connection, which they close. */
export function followOpenDatabase(
  database: Database,
  { latestSequence, schema, memory = DEFAULT_PLAN }: FollowedSqliteOptions,
): FollowedDocuments {
  const state = new StoreState(latestSequence, '', memory)
  const texts = new CompactTexts()
  const reads = new FollowedReads(database, state, texts)
  return new FollowedDocuments({ state, texts, reads }, schema)
}

class FollowedReads implements DocumentReads {
  readonly isEmbedded = true
  readonly #state: StoreState
  readonly #database: Database
  readonly #reads: Reads
  #isTurnOpen = false

  constructor(database: Database, state: StoreState, texts: CompactTexts) {
    this.#state = state
    this.#database = database
    this.#reads = new Reads(database, state.newest, texts)
  }

  read(id: string, snapshot: number, latest: boolean): StoredDocument | null {
    return this.#run(() => this.#reads.read(id, snapshot, latest))
  }

  range(request: RangeRequest, table: string, latest: boolean): RangeResult {
    return this.#run(() => this.#reads.range(request, table, latest))
  }

  operation(operationId: string): OperationRecord | null {
    return this.#run(() => this.#reads.operation(operationId))
  }

  trim(): void {
    this.#reads.endTransaction()
    this.#database.run('pragma shrink_memory')
  }

  followed(): void {
    this.#reads.endTransaction()
  }

  async close(): Promise<void> {
    this.#reads.endTransaction()
    this.#database.close()
  }

  /** Reads of one turn of the event loop share a transaction; a longer one would keep the log. */
  #run<T>(read: () => T): T {
    if (!this.#isTurnOpen) {
      this.#isTurnOpen = true
      setImmediate(() => {
        this.#isTurnOpen = false
        if (this.#state.status.state !== 'closed') this.#reads.endTransaction()
      })
    }
    try {
      this.#reads.beginTransaction()
      return read()
    } catch (error) {
      throw this.#faultOf(error)
    }
  }

  #faultOf(error: unknown): Fault {
    const fault = storeFault(error)
    if (fault.code === 'PRODUCT_CORRUPT') this.#state.fail(fault.detail ?? fault.message)
    return fault
  }
}

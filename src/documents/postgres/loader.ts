/** Fills an empty schema of documents, without a wait for the disk before the last statement. */
import type { Connection } from '../../database/connection.ts'
import type { Database } from '../../database/database.ts'
import { binaryString } from '../../system/binary-strings.ts'
import { microsColumn } from '../column-values.ts'
import { checkedCompactId, tableOf, ULID_BYTES, ulidBytes, ulidMicros } from '../compact-ids.ts'
import type { CompactTexts } from '../compact-texts.ts'
import type { OperationRecord, StoredDocument } from '../store.ts'
import type { LoadedState, StoreLoader } from '../store-loader.ts'
import { bigintArray, byteaArray, bytesArray, integerArray, textArray } from './binary-arrays.ts'
import { storeFault } from './failures.ts'
import { loadTexts } from './field-shapes.ts'
import { documentDatabase } from './schema.ts'
import { openPostgresDocuments, type PostgresDocumentsOptions } from './stores.ts'

const DOCUMENTS = `
  insert into documents (id, sequence, created_at_micros, text)
  select * from unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::text[])`

/** Retention removes records of operations by the batches that name them. */
const OPERATIONS = `
  with batch as (
    insert into batches (batch, latest_sequence, at_micros, written, recorded)
    select coalesce(max(batch), 0) + 1, $1, $2, '{}', $3 from batches
  )
  insert into operations (operation_id, fingerprint, commit_sequence, release_id, function,
                          result, attempts, created_at_micros)
  select * from unnest($3::bytea[], $4::bytea[], $5::bigint[], $6::text[], $7::text[], $8::text[],
                       $9::integer[], $10::bigint[])`

/** The last batch has the sequence that the store continues. */
const FINISH = `
  insert into batches (batch, latest_sequence, at_micros, written, recorded)
  select coalesce(max(batch), 0) + 1, $1, $2, '{}', '{}' from batches`

/** The ID of the database is recorded in the root, as that of an opened store is. */
export interface PostgresLoader extends StoreLoader {
  readonly databaseId: string
}

/** Creates the schema. The caller has checked that there is none. Raises UNAVAILABLE. */
export async function openPostgresLoader(
  options: Omit<PostgresDocumentsOptions, 'databaseId'>,
  state: LoadedState,
): Promise<PostgresLoader> {
  const store = await openPostgresDocuments({ ...options, databaseId: null })
  try {
    await store.setFieldShapes(state.shapes)
  } finally {
    await store.close()
  }
  const { url } = options
  const database = documentDatabase({ url, connectionsMax: 1, onIdleLoss: () => undefined })
  try {
    const connection = await database.connect()
    await connection.query('set synchronous_commit = off')
    const texts = await loadTexts(connection)
    const { databaseId } = store
    return new Loader({ database, connection, texts, databaseId, state })
  } catch (error) {
    await database.close()
    throw storeFault(error)
  }
}

interface Parts {
  readonly database: Database
  readonly connection: Connection
  readonly texts: CompactTexts
  readonly databaseId: string
  readonly state: LoadedState
}

class Loader implements PostgresLoader {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get databaseId(): string {
    return this.#parts.databaseId
  }

  add(documents: readonly StoredDocument[]): Promise<void> {
    const { texts } = this.#parts
    return this.#write(DOCUMENTS, () => {
      const ids = documents.map(({ id }) => checkedCompactId(id))
      const created = documents.map(({ createdAtMicros }, i) => {
        const micros = microsColumn(createdAtMicros)
        return ulidMicros(ids[i]!, ids[i]!.length - ULID_BYTES) === micros ? null : micros
      })
      return [
        bytesArray(ids),
        bigintArray(documents.map(({ sequence }) => sequence)),
        bigintArray(created),
        textArray(documents.map(({ id, text }) => texts.compact(tableOf(id), text))),
      ]
    })
  }

  addOperations(records: readonly OperationRecord[]): Promise<void> {
    const { sequence } = this.#parts.state
    return this.#write(OPERATIONS, () => {
      const created = records.map(({ createdAtMicros }) => microsColumn(createdAtMicros))
      return [
        sequence,
        Math.max(...created),
        bytesArray(records.map(({ operationId }) => ulidBytes(operationId)!)),
        byteaArray(records.map(({ fingerprint }) => binaryString(fingerprint))),
        bigintArray(records.map(({ commitSequence }) => commitSequence)),
        textArray(records.map(({ releaseId }) => releaseId)),
        textArray(records.map((record) => record.function)),
        textArray(records.map(({ result }) => result)),
        integerArray(records.map(({ attempts }) => attempts)),
        bigintArray(created),
      ]
    })
  }

  async finish(): Promise<void> {
    const { sequence, atMicros } = this.#parts.state
    // A commit that waits for the disk waits for everything before it in the log.
    await this.#write('set synchronous_commit = on', () => [])
    await this.#write(FINISH, () => [sequence, microsColumn(atMicros)])
  }

  async close(): Promise<void> {
    const { database, connection } = this.#parts
    // Its settings are not those of a store.
    connection.discard()
    await database.close()
  }

  async #write(sql: string, parameters: () => (number | Buffer)[]): Promise<void> {
    try {
      await this.#parts.connection.query(sql, parameters(), { prepare: true })
    } catch (error) {
      throw storeFault(error)
    }
  }
}

/** The tables of one transaction, and which of its operations each of them admits. */
import { FILE_DOCUMENTS } from '../../value/files/files.ts'
import { isOfTable, tableOfCanonicalId, tableOfId } from '../../value/ids.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { PreparedTable } from '../tables/prepared-tables.ts'

export type TableSource = Pick<PreparedRelease, 'tables' | 'systemTables'> &
  Partial<Pick<PreparedRelease, 'serverTables'>>

interface TransactionTablesOptions {
  readonly release: TableSource
  readonly writable: boolean
  /** True if the server itself runs the transaction. */
  readonly isSystem?: boolean
}

export class TransactionTables {
  readonly #options: TransactionTablesOptions
  #lastName = ''

  constructor(options: TransactionTablesOptions) {
    this.#options = options
  }

  /**
   * Returns the name of the table of an ID. Throws OperationError for a text that is not an ID,
   * unless it is known to be one.
   */
  nameOf(id: string, isKnown: boolean): string {
    if (isKnown) return this.#nameOfCanonical(id)
    const table = tableOfId(id)
    if (table === null)
      throw new OperationError('TypeError', `"${id.slice(0, 100)}" is not a document ID`)
    return table
  }

  /** Returns the table of a canonical ID; undefined where Functions may not read its documents. */
  find(id: string): PreparedTable | undefined {
    return this.#find(this.#nameOfCanonical(id))
  }

  /** Throws OperationError for an unknown table. */
  readable(name: string, verb: string): PreparedTable {
    const table = this.#find(name)
    if (table !== undefined) return table
    const rule = `schema.ts declares no table "${name.slice(0, 64)}"`
    throw new OperationError('TypeError', `ctx.db.${verb}: ${rule}`)
  }

  /** Throws OperationError for an unknown table, and where the transaction may not write to it. */
  writable(name: string, verb: string): PreparedTable {
    const { writable, isSystem, release } = this.#options
    if (!writable) {
      const rule = 'a Query cannot write; make it a mutation'
      throw new OperationError('TypeError', `ctx.db.${verb}: ${rule}`)
    }
    const isOwn = isSystem === true || !release.systemTables.has(name)
    // A Mutation deletes files together with what refers to them; only uploads make them.
    if (isOwn || (name === FILE_DOCUMENTS && verb === 'delete')) return this.readable(name, verb)
    const rule = 'the server writes metadata of files; use ctx.storage'
    throw new OperationError('TypeError', `ctx.db.${verb}: ${rule}`)
  }

  #find(name: string): PreparedTable | undefined {
    const { tables, systemTables } = this.#options.release
    return tables.get(name) ?? systemTables.get(name)
  }

  /** Caches the name, since most successive IDs are of one table. */
  #nameOfCanonical(id: string): string {
    if (!isOfTable(this.#lastName, id)) this.#lastName = tableOfCanonicalId(id)
    return this.#lastName
  }
}

/** `ctx.db`: its methods become operations for the server. */
import type { Call } from '../calls.ts'
import { encode } from '../encoding.ts'
import { changeDocument, insertDocument, readDocument } from '../operations.ts'
import { Rows } from '../rows.ts'
import { workspace } from '../workspace.ts'
import { boundsOf, RangeBuilder } from './range-builder.ts'

type Build = (q: RangeBuilder) => unknown
type Fields = Readonly<Record<string, unknown>>

const { stringify } = JSON
const { keys } = Object

function rowsOfIndex(call: Call, table: string, name: string, build: Build | undefined): Rows {
  const indexes = workspace.tables.get(table) ?? []
  const index = indexes.find((known) => known.name === name)
  if (index === undefined) {
    const known = indexes.map((other) => other.name).join(', ') || 'none'
    throw new TypeError(`table "${table}" has no index "${name}" (it has: ${known})`)
  }
  const builder = new RangeBuilder(`index "${name}" of table "${table}"`, index.fields)
  build?.(builder)
  return new Rows(call, { table, index: name, ...boundsOf(builder) }, 'asc')
}

/** The reads that a Query and a Mutation share. */
class Reads {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  get(id: string): Promise<unknown> {
    if (typeof id !== 'string') throw new TypeError('ctx.db.get needs the ID of a document')
    return readDocument(this.#call, id)
  }

  table(name: string) {
    const { tables } = workspace
    if (!tables.has(name)) {
      const known = [...tables.keys()].join(', ') || 'none'
      throw new TypeError(`schema.ts declares no table "${name}" (it has: ${known})`)
    }
    const call = this.#call
    return {
      index: (index: string, build?: Build) => rowsOfIndex(call, name, index, build),
      scan: () => new Rows(call, { table: name, index: null, equal: [], bounds: '' }, 'asc'),
    }
  }
}

function rejectWrite(method: string): never {
  throw new TypeError(`ctx.db.${method} is a write in a Query: make the Function a mutation`)
}

export class QueryDatabase extends Reads {
  insert(): never {
    return rejectWrite('insert')
  }
  patch(): never {
    return rejectWrite('patch')
  }
  replace(): never {
    return rejectWrite('replace')
  }
  delete(): never {
    return rejectWrite('delete')
  }
}

function idText(id: unknown, method: string): string {
  if (typeof id !== 'string') throw new TypeError(`ctx.db.${method} needs the ID of a document`)
  return stringify(id)
}

function fieldsText(fields: Fields, what: string): string {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw new TypeError(`${what} needs an object of fields`)
  }
  return encode(fields, what)
}

export class MutationDatabase extends Reads {
  readonly #call: Call

  constructor(call: Call) {
    super(call)
    this.#call = call
  }

  insert(table: string, fields: Fields): Promise<unknown> {
    if (typeof table !== 'string') throw new TypeError('ctx.db.insert needs the name of a table')
    const text = fieldsText(fields, `insert("${table}")`)
    return insertDocument(this.#call, `["insert",${stringify(table)},${text}]`, table)
  }

  /** Changes the fields given; a field that is undefined is removed. */
  patch(id: string, fields: Fields): Promise<unknown> {
    const text = fieldsText(fields, 'patch')
    const removed = stringify(keys(fields).filter((name) => fields[name] === undefined))
    const op = `["patch",${idText(id, 'patch')},${text},${removed}]`
    return changeDocument(this.#call, op, 'ctx.db.patch')
  }

  replace(id: string, fields: Fields): Promise<unknown> {
    const text = fieldsText(fields, 'replace')
    const op = `["replace",${idText(id, 'replace')},${text}]`
    return changeDocument(this.#call, op, 'ctx.db.replace')
  }

  delete(id: string): Promise<unknown> {
    return changeDocument(this.#call, `["delete",${idText(id, 'delete')}]`, 'ctx.db.delete')
  }
}

/** `ctx.db`: what a handler says becomes operations for the server. */
import type { IndexManifest } from '../../value/manifest.ts'
import type { Codec } from './codec.ts'
import type { makeRangeBuilder, makeRows, Operate } from './ranges.ts'

/** Reads one document. */
export type OperateGet = (id: string) => Promise<unknown>

/** Sends writes, which must be awaited. */
export interface OperateWrites {
  insert(op: string, table: string): Promise<unknown>
  /** `name` is what the author wrote. */
  change(op: string, name: string): Promise<unknown>
}

/** The reads of `ctx.db`. `tables` maps each table of the schema to its indexes. */
export function makeReads(
  tables: ReadonlyMap<string, readonly IndexManifest[]>,
  Rows: ReturnType<typeof makeRows>,
  Builder: ReturnType<typeof makeRangeBuilder>,
) {
  const { parts } = Builder
  Reflect.deleteProperty(Builder, 'parts')
  type Build = (q: InstanceType<typeof Builder>) => unknown

  function rowsOfIndex(operate: Operate, table: string, name: string, build: Build | undefined) {
    const indexes = tables.get(table) ?? []
    const index = indexes.find((known) => known.name === name)
    if (index === undefined) {
      const known = indexes.map((other) => other.name).join(', ') || 'none'
      throw new TypeError(`table "${table}" has no index "${name}" (it has: ${known})`)
    }
    const builder = new Builder(`index "${name}" of table "${table}"`, index.fields)
    build?.(builder)
    return new Rows(operate, { table, index: name, ...parts(builder) }, 'asc')
  }

  return class Reads {
    readonly #operate: Operate
    readonly #get: OperateGet

    constructor(operate: Operate, get: OperateGet) {
      this.#operate = operate
      this.#get = get
    }

    get(id: string): Promise<unknown> {
      if (typeof id !== 'string') throw new TypeError('ctx.db.get needs the ID of a document')
      return this.#get(id)
    }

    table(name: string) {
      if (!tables.has(name)) {
        const known = [...tables.keys()].join(', ') || 'none'
        throw new TypeError(`schema.ts declares no table "${name}" (it has: ${known})`)
      }
      const operate = this.#operate
      return {
        index: (index: string, build?: Build) => rowsOfIndex(operate, name, index, build),
        scan: () => new Rows(operate, { table: name, index: null, equal: [], bounds: '' }, 'asc'),
      }
    }
  }
}

export function makeQueryDatabase(Reads: ReturnType<typeof makeReads>) {
  function refuse(verb: string): never {
    throw new TypeError(`ctx.db.${verb} is a write in a Query: make the Function a mutation`)
  }

  return class QueryDatabase extends Reads {
    insert(): never {
      return refuse('insert')
    }
    patch(): never {
      return refuse('patch')
    }
    replace(): never {
      return refuse('replace')
    }
    delete(): never {
      return refuse('delete')
    }
  }
}

export function makeMutationDatabase(Reads: ReturnType<typeof makeReads>, encode: Codec['encode']) {
  const { stringify } = JSON
  const { keys } = Object
  type Fields = Readonly<Record<string, unknown>>

  function idText(id: unknown, verb: string): string {
    if (typeof id !== 'string') throw new TypeError(`ctx.db.${verb} needs the ID of a document`)
    return stringify(id)
  }

  function fieldsText(fields: Fields, what: string): string {
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
      throw new TypeError(`${what} needs an object of fields`)
    }
    return encode(fields, what)
  }

  return class MutationDatabase extends Reads {
    readonly #writes: OperateWrites

    constructor(operate: Operate, get: OperateGet, writes: OperateWrites) {
      super(operate, get)
      this.#writes = writes
    }

    insert(table: string, fields: Fields): Promise<unknown> {
      if (typeof table !== 'string') throw new TypeError('ctx.db.insert needs the name of a table')
      const text = fieldsText(fields, `insert("${table}")`)
      return this.#writes.insert(`["insert",${stringify(table)},${text}]`, table)
    }

    /** A field that is undefined is removed. */
    patch(id: string, fields: Fields): Promise<unknown> {
      const text = fieldsText(fields, 'patch')
      const removed = stringify(keys(fields).filter((name) => fields[name] === undefined))
      const op = `["patch",${idText(id, 'patch')},${text},${removed}]`
      return this.#writes.change(op, 'ctx.db.patch')
    }

    replace(id: string, fields: Fields): Promise<unknown> {
      const text = fieldsText(fields, 'replace')
      const op = `["replace",${idText(id, 'replace')},${text}]`
      return this.#writes.change(op, 'ctx.db.replace')
    }

    delete(id: string): Promise<unknown> {
      return this.#writes.change(`["delete",${idText(id, 'delete')}]`, 'ctx.db.delete')
    }
  }
}

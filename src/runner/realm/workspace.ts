/** What a Workspace defines: its Functions by name, its tables, and the description of both. */
import type { FunctionManifest, IndexManifest } from '../../value/manifest.ts'

export type Handler = (ctx: unknown, args: unknown) => unknown

export interface DefinedFunction {
  readonly kind: FunctionManifest['kind']
  readonly auth: FunctionManifest['auth']
  /** Codes that `ctx.fail` accepts. */
  readonly errors: FunctionManifest['errors']
  readonly uses?: FunctionManifest['uses']
  readonly handler: Handler
}

export interface Workspace {
  readonly functions: Map<string, DefinedFunction>
  readonly tables: Map<string, readonly IndexManifest[]>
  /** JSON text of a WorkspaceDescription. */
  description(): string
}

/** Reads what the script gave to `define`. Throws a TypeError for what is no definition. */
export function makeReadWorkspace() {
  const functionKey = Symbol.for('svc.function')
  const schemaKey = Symbol.for('svc.schema')
  type Marked = Readonly<Record<symbol, unknown>>
  type Definition = FunctionManifest & { readonly handler: Handler }
  interface Table {
    readonly fields: unknown
    readonly indexes: readonly IndexManifest[]
  }

  function byName(a: { readonly name: string }, b: { readonly name: string }): number {
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
  }

  function definitionsOf(modules: Readonly<Record<string, Marked>>): Map<string, Definition> {
    const found = new Map<string, Definition>()
    for (const [path, module] of Object.entries(modules)) {
      for (const [key, exported] of Object.entries(module)) {
        const holds = (typeof exported === 'object' || typeof exported === 'function') && exported
        const definition = holds ? (exported as Marked)[functionKey] : undefined
        if (definition === undefined) continue
        const { kind, handler } = definition as Definition
        const isKind = kind === 'query' || kind === 'mutation' || kind === 'action'
        if (!isKind || typeof handler !== 'function') {
          throw new TypeError(`${path}.${key}: make it with query, mutation or action`)
        }
        found.set(`${path}.${key}`, definition as Definition)
      }
    }
    return found
  }

  function describe(functions: Map<string, Definition>, tables: Record<string, Table>): string {
    const described = [...functions].map(([name, it]) => ({
      name,
      kind: it.kind,
      visibility: it.visibility,
      clients: [...it.clients].sort(),
      auth: it.auth,
      arguments: it.arguments,
      returns: it.returns,
      errors: it.errors,
      ...(it.kind === 'action' && { uses: it.uses }),
    }))
    const listed = Object.entries(tables).map(([name, { fields, indexes }]) => ({
      name,
      fields,
      indexes: indexes.map((it) => ({ name: it.name, fields: it.fields, unique: it.unique })),
    }))
    for (const table of listed) table.indexes.sort(byName)
    return JSON.stringify({ functions: described.sort(byName), tables: listed.sort(byName) })
  }

  return (schema: Marked | null, modules: Readonly<Record<string, Marked>>): Workspace => {
    const declared = schema?.[schemaKey] as { tables: Record<string, Table> } | undefined
    const tables = declared?.tables ?? {}
    const functions = definitionsOf(modules)
    return {
      functions,
      tables: new Map(Object.entries(tables).map(([name, table]) => [name, table.indexes])),
      description: () => describe(functions, tables),
    }
  }
}

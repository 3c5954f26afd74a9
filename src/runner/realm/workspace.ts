/** The definitions of a Workspace: its Functions by name, its tables, and a description of all. */
import { type DefinedRoute, describeRoute, onceFunction } from '../../value/http/routes.ts'
import type { CronManifest, FunctionManifest, IndexManifest } from '../../value/manifest.ts'
import { migrationFunction } from '../../value/migrations/migrations.ts'
import {
  type DefinedMigration,
  describeMigration,
  type Encoders,
  migrationHandler,
} from './migrations.ts'
import type { Script } from './workspace-script.ts'

export type Handler = (ctx: unknown, args: unknown) => unknown

export interface DefinedFunction {
  readonly kind: FunctionManifest['kind']
  readonly auth: FunctionManifest['auth']
  /** Codes that `ctx.fail` accepts. */
  readonly errors: FunctionManifest['errors']
  readonly uses?: FunctionManifest['uses']
  readonly retry?: FunctionManifest['retry']
  readonly handler: Handler
}

export interface Workspace {
  /**
   * Functions, the batches of migrations by `migrationFunction`, and `once` of hooks by
   * `onceFunction`.
   */
  readonly functions: Map<string, DefinedFunction>
  /** Indexes of each table. */
  readonly tables: Map<string, readonly IndexManifest[]>
  /** JSON text of a WorkspaceDescription. */
  description(): string
}

type Marked = Readonly<Record<symbol, unknown>>
type Definition = FunctionManifest & { readonly handler: Handler }
interface Table {
  readonly fields: unknown
  readonly indexes: readonly IndexManifest[]
}
/** The argument of `define`. */
interface Definitions {
  readonly schema: Marked | null
  readonly crons?: Marked
  readonly migrations?: Marked
  readonly http?: Marked
  readonly modules: Readonly<Record<string, Marked>>
}

const functionKey = Symbol.for('svc.function')
const schemaKey = Symbol.for('svc.schema')
const cronsKey = Symbol.for('svc.crons')
const migrationsKey = Symbol.for('svc.migrations')
const httpKey = Symbol.for('svc.http')

/** The exports of `migrations.ts`. */
interface DeclaredMigrations {
  readonly migrations: readonly DefinedMigration[]
  readonly requires: readonly string[]
}
const NO_MIGRATIONS: DeclaredMigrations = { migrations: [], requires: [] }

/** The Workspace of this realm, once its script has run. */
export let workspace: Workspace

/**
 * Runs the script, with the values of `globalNames` as parameters, and reads what it defines.
 * Throws what the script throws, and a TypeError for what is not a definition.
 */
export function loadWorkspace(
  script: Script,
  globalNames: readonly string[],
  encoders: Encoders,
): void {
  let found: Workspace | null = null
  const define = (definitions: Definitions): void => {
    found = readWorkspace(definitions, encoders)
  }
  const scope = globalThis as Readonly<Record<string, unknown>>
  script(Object.freeze({ define }), ...globalNames.map((name) => scope[name]))
  if (found === null) throw new TypeError('the script defines no Workspace')
  workspace = found
}

function readWorkspace(definitions: Definitions, encoders: Encoders): Workspace {
  const { schema, crons, modules } = definitions
  const declared = schema?.[schemaKey] as { tables: Record<string, Table> } | undefined
  const tables = declared?.tables ?? {}
  const functions = definitionsOf(modules)
  const declaredCrons = cronsOf(crons, encoders)
  const declaredMigrations = (definitions.migrations?.[migrationsKey] ??
    NO_MIGRATIONS) as DeclaredMigrations
  const callable = new Map<string, DefinedFunction>(functions)
  for (const migration of declaredMigrations.migrations) {
    callable.set(migrationFunction(migration.name), batchOf(migration, encoders))
  }
  const routes = (definitions.http?.[httpKey] ?? []) as readonly DefinedRoute[]
  for (const route of routes) {
    if (route.kind !== 'hook' || route.once === null) continue
    callable.set(onceFunction(route.name), codeOfOnce(route.once))
  }
  return {
    functions: callable,
    tables: new Map(Object.entries(tables).map(([name, table]) => [name, table.indexes])),
    description: () => {
      const declared = { crons: declaredCrons, routes, ...declaredMigrations }
      return describe(functions, tables, declared)
    },
  }
}

/** Returns the batches of a migration as a Query: its code reads, and the server writes. */
function batchOf(migration: DefinedMigration, encoders: Encoders): DefinedFunction {
  const handler = migrationHandler(migration, encoders)
  return { kind: 'query', auth: 'none', errors: {}, handler }
}

/** Returns `once` of a hook as a Query, which gets the delivery without a `ctx`. */
function codeOfOnce(once: (delivery: unknown) => unknown): DefinedFunction {
  const handler: Handler = (_, args) => once((args as { readonly delivery: unknown }).delivery)
  return { kind: 'query', auth: 'none', errors: {}, handler }
}

function definitionsOf(modules: Definitions['modules']): Map<string, Definition> {
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

/** Encodes the arguments. Throws a TypeError for what is not data. */
function cronsOf(definition: Marked | undefined, { encode }: Encoders): CronManifest[] {
  const declared = (definition?.[cronsKey] ?? []) as (CronManifest & { arguments: unknown })[]
  return declared.map(({ name, schedule, timeZone, everyMillis, overlap, ...call }) => ({
    name,
    schedule,
    timeZone,
    everyMillis,
    overlap,
    function: call.function,
    arguments: JSON.parse(encode(call.arguments, `arguments of the Cron ${name}`)),
  }))
}

interface Declared extends DeclaredMigrations {
  readonly crons: CronManifest[]
  readonly routes: readonly DefinedRoute[]
}

function describe(
  functions: Map<string, Definition>,
  tables: Record<string, Table>,
  { crons, migrations, requires, routes }: Declared,
): string {
  const described = [...functions].map(([name, definition]) => ({
    name,
    kind: definition.kind,
    visibility: definition.visibility,
    clients: [...definition.clients].sort(),
    auth: definition.auth,
    arguments: definition.arguments,
    returns: definition.returns,
    errors: definition.errors,
    ...(definition.kind === 'action' && { uses: definition.uses }),
    ...(definition.retry !== undefined && { retry: definition.retry }),
    ...(definition.compress === false && { compress: definition.compress }),
  }))
  const listed = Object.entries(tables).map(([name, { fields, indexes }]) => ({
    name,
    fields,
    indexes: indexes.map(({ name, fields, unique }) => ({ name, fields, unique })),
  }))
  for (const table of listed) table.indexes.sort(byName)
  return JSON.stringify({
    functions: described.sort(byName),
    tables: listed.sort(byName),
    ...(crons.length > 0 && { crons: crons.sort(byName) }),
    ...(migrations.length > 0 && { migrations: migrations.map(describeMigration).sort(byName) }),
    ...(requires.length > 0 && { requires: [...requires].sort() }),
    ...(routes.length > 0 && { http: routes.map(describeRoute).sort(byName) }),
  })
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/**
 * Loads a bundle of the project's own in this process, where the server uses a sandboxed runner. It
 * serves tests and the templates.
 */
import { runInThisContext } from 'node:vm'
import { Fault } from '../src/errors/fault.ts'
import { encode } from '../src/runner/realm/encoding.ts'
import { type DefinedMigration, describeMigration } from '../src/runner/realm/migrations.ts'
import { type DefinedRoute, describeRoute } from '../src/value/http/routes.ts'

interface Defined {
  readonly schema: unknown
  readonly crons?: unknown
  readonly migrations?: unknown
  readonly http?: unknown
  readonly modules: { readonly [name: string]: { readonly [name: string]: unknown } }
}

type Content = Record<string, unknown> & {
  tables: Record<string, { fields: unknown; indexes: unknown }>
}

/** Returns the description of a bundle. Positions in its errors are those of the bundle. */
export async function describeHere({ source }: { source: string }): Promise<unknown> {
  let defined: Defined | undefined
  try {
    const load = runInThisContext(`(__svc) => {\n${source}\n}`, { filename: '/bundle.js' })
    load({ define: (given: Defined) => (defined = given) })
    return describe(defined!)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const frames = (error.stack ?? '').matchAll(/bundle\.js:(\d+):(\d+)/g)
    const positions = [...frames].map(
      ([, line, column]) => `bundle.js:${Number(line) - 1}:${column}`,
    )
    const detail = [`${error.name}: ${error.message}`, ...positions].join('\n')
    throw new Fault('FUNCTION_FAILED', { detail, cause: error })
  }
}

function describe({ schema, crons, migrations, http, modules }: Defined) {
  const { tables } = contentOf(schema, 'svc.schema')!
  const functions = Object.entries(modules).flatMap(([module, exports]) =>
    Object.entries(exports).flatMap(([name, value]) => {
      const content = contentOf(value, 'svc.function')
      if (content === undefined) return []
      const { handler: _, ...declared } = content
      return [{ name: `${module}.${name}`, ...declared }]
    }),
  )
  const json = {
    functions: functions.sort((a, b) => (a.name < b.name ? -1 : 1)),
    tables: Object.entries(tables)
      .map(([name, { fields, indexes }]) => ({ name, fields, indexes }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
  const declared = (contentOf(crons, 'svc.crons') ?? []) as unknown as { arguments: unknown }[]
  const encoded = declared.map((cron) => ({
    ...cron,
    arguments: JSON.parse(encode(cron.arguments, 'arguments of a Cron')),
  }))
  if (encoded.length > 0) Object.assign(json, { crons: encoded })
  const { migrations: list, requires } = (contentOf(migrations, 'svc.migrations') ?? {
    migrations: [],
    requires: [],
  }) as unknown as { migrations: DefinedMigration[]; requires: string[] }
  if (list.length > 0) Object.assign(json, { migrations: list.map(describeMigration).sort(byName) })
  if (requires.length > 0) Object.assign(json, { requires: [...requires].sort() })
  const routes = (contentOf(http, 'svc.http') ?? []) as unknown as DefinedRoute[]
  if (routes.length > 0) Object.assign(json, { http: routes.map(describeRoute).sort(byName) })
  return JSON.parse(JSON.stringify(json)) as unknown
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1
}

function contentOf(value: unknown, symbol: string): Content | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { [key: symbol]: Content })[Symbol.for(symbol)]
}

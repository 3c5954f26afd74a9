/** Differences between the declarations of a package and those of a Release, by name. */
import { canonicalJson } from '../../value/canonical-json.ts'
import type {
  CronManifest,
  FunctionManifest,
  TableManifest,
  WorkspaceManifest,
} from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import type { FunctionCatalog, TableCatalog } from '../../wire/catalogs.ts'
import type { CronList } from '../../wire/crons.ts'

/** Names in order. */
export type Difference = {
  readonly added: string[]
  readonly removed: string[]
  /** Names and the parts that differ, such as `arguments`, or `body` of a table. */
  readonly changed: { name: string; parts: string[] }[]
}

export type Changes = {
  readonly functions: Difference
  /** Parts are fields; indexes stand apart. */
  readonly tables: Difference
  /** Named `<table>.<index>`. */
  readonly indexes: Difference
  /** Crons without their arguments, which the server does not list. */
  readonly crons: Difference
}

/** The declarations of a Release, from its catalogs or its manifest. */
export interface Deployed {
  readonly functions: readonly (FunctionManifest | FunctionCatalog['functions'][number])[]
  readonly tables: readonly (TableManifest | TableCatalog['tables'][number])[]
  readonly crons?: readonly (CronManifest | ListedCron)[]
}

type Parts = ReadonlyMap<string, Json>

/** Compares with a Release, or with nothing if there is none. */
export function changesOf(
  next: Pick<WorkspaceManifest, 'functions' | 'tables' | 'crons'>,
  deployed: Deployed | null,
): Changes {
  const { functions, tables, crons = [] }: Deployed = deployed ?? { functions: [], tables: [] }
  return {
    functions: difference(byName(next.functions, functionParts), byName(functions, functionParts)),
    tables: difference(byName(next.tables, fieldParts), byName(tables, fieldParts)),
    indexes: difference(indexesOf(next.tables), indexesOf(tables)),
    crons: difference(byName(next.crons ?? [], cronParts), byName(crons, cronParts)),
  }
}

export function isUnchanged({ functions, tables, indexes, crons }: Changes): boolean {
  return [functions, tables, indexes, crons].every(({ added, removed, changed }) => {
    return added.length + removed.length + changed.length === 0
  })
}

/** One line for each difference, such as `~ function messages.list (arguments)`. */
export function changeLines({ functions, tables, indexes, crons }: Changes): string[] {
  return [
    ...linesOf('function', functions),
    ...linesOf('table', tables),
    ...linesOf('index', indexes),
    ...linesOf('cron', crons),
  ]
}

function linesOf(noun: string, { added, removed, changed }: Difference): string[] {
  return [
    ...added.map((name) => `+ ${noun} ${name}`),
    ...changed.map(({ name, parts }) => `~ ${noun} ${name} (${parts.join(', ')})`),
    ...removed.map((name) => `- ${noun} ${name}`),
  ]
}

function difference(next: ReadonlyMap<string, Parts>, previous: ReadonlyMap<string, Parts>) {
  const names = [...new Set([...next.keys(), ...previous.keys()])].sort()
  const found: Difference = { added: [], removed: [], changed: [] }
  for (const name of names) {
    const [one, other] = [next.get(name), previous.get(name)]
    if (other === undefined) found.added.push(name)
    else if (one === undefined) found.removed.push(name)
    else {
      const parts = differingParts(one, other)
      if (parts.length > 0) found.changed.push({ name, parts })
    }
  }
  return found
}

function differingParts(next: Parts, previous: Parts): string[] {
  const names = [...new Set([...next.keys(), ...previous.keys()])].sort()
  return names.filter((name) => textOf(next.get(name)) !== textOf(previous.get(name)))
}

function textOf(part: Json | undefined): string | null {
  return part === undefined ? null : canonicalJson(part)
}

function byName<T extends { readonly name: string }>(
  items: readonly T[],
  partsOf: (item: T) => Parts,
): ReadonlyMap<string, Parts> {
  return new Map(items.map((item) => [item.name, partsOf(item)]))
}

const NO_USES = { network: [], secrets: [], storage: 'none' } as const

/** A catalog lists what an Action uses in whole, and for every kind of Function. */
function functionParts(item: FunctionManifest | Deployed['functions'][number]): Parts {
  const { name: _, uses = NO_USES, ...parts } = item
  const all = { ...parts, uses: { ...NO_USES, ...uses } }
  return new Map(Object.entries(all as unknown as { [name: string]: Json }))
}

function fieldParts({ fields }: Pick<TableManifest, 'fields'>): Parts {
  return new Map(Object.entries(fields as unknown as { [name: string]: Json }))
}

type ListedCron = CronList['crons'][number]

/** A list of Crons lacks their arguments. */
function cronParts(cron: CronManifest | ListedCron): Parts {
  const { schedule, timeZone, function: callee, overlap } = cron
  const every = 'every' in cron ? (cron.every?.milliseconds ?? null) : cron.everyMillis
  return new Map(Object.entries({ schedule, timeZone, every, function: callee, overlap }))
}

function indexesOf(tables: readonly Pick<TableManifest, 'name' | 'indexes'>[]) {
  return new Map(
    tables.flatMap((table) =>
      table.indexes.map(({ name, fields, unique }): [string, Parts] => {
        const parts = new Map<string, Json>([
          ['fields', [...fields]],
          ['unique', unique],
        ])
        return [`${table.name}.${name}`, parts]
      }),
    ),
  )
}

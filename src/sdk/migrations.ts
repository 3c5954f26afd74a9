/** `migration`: declares how stored documents of one table become those of a new schema. */
import {
  BATCH_DOCUMENTS_MAX,
  MIGRATION_NAME,
  MIGRATIONS_MAX,
} from '../value/migrations/migrations.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'
import { kindOf } from './validators.ts'

const MIGRATION = Symbol.for('svc.migration')
const MIGRATIONS = Symbol.for('svc.migrations')
const OPTIONS = ['table', 'index', 'batch', 'each']
const EXAMPLE = '{ addPriority: migration({ table: "tasks", each: (ctx, task) => ({ ... }) }) }'

type Each = (ctx: unknown, document: unknown) => unknown

/** The part of a migration that the runner reads. */
interface MigrationContent {
  readonly table: string
  readonly index: string | null
  readonly batch: number
  readonly each: Each
}

export interface MigrationDefinition {
  readonly [MIGRATION]: MigrationContent
}

/** The exports of `migrations.ts` as the runner reads them. */
interface MigrationsDefinition {
  readonly [MIGRATIONS]: {
    readonly migrations: readonly (MigrationContent & { readonly name: string })[]
    readonly requires: readonly string[]
  }
}

export function migration(definition: unknown): MigrationDefinition {
  const owner = 'migration(...)'
  if (!isPlainObject(definition)) {
    throw new DefinitionError(
      `${owner} is given ${kindOf(definition)}`,
      'Pass an object: { table: "tasks", each: (ctx, task) => ({ priority: "normal" }) }',
    )
  }
  rejectUnknownOptions(definition, OPTIONS, owner)
  const { table, index = null, batch = BATCH_DOCUMENTS_MAX, each } = definition
  if (typeof table !== 'string') {
    const fix = 'Write the name of a table of schema.ts'
    throw new DefinitionError(`${owner} table is ${kindOf(table)}`, fix)
  }
  if (index !== null && typeof index !== 'string') {
    const fix = 'Write the name of an index of the table, or leave it out for the order of creation'
    throw new DefinitionError(`${owner} index is ${kindOf(index)}`, fix)
  }
  if (
    typeof batch !== 'number' ||
    !Number.isInteger(batch) ||
    batch < 1 ||
    batch > BATCH_DOCUMENTS_MAX
  ) {
    const shown = typeof batch === 'number' ? String(batch) : kindOf(batch)
    const fix = `Write a whole number from 1 to ${BATCH_DOCUMENTS_MAX}`
    throw new DefinitionError(`${owner} batch is ${shown}`, fix)
  }
  return Object.freeze({
    [MIGRATION]: Object.freeze({ table, index, batch, each: eachOf(each, owner) }),
  })
}

function eachOf(each: unknown, owner: string): Each {
  if (typeof each !== 'function') {
    const fix =
      'Write each: (ctx, document) => ({ ... }), or return null to leave a document as it is'
    throw new DefinitionError(`${owner} each is ${kindOf(each)}`, fix)
  }
  // Its text tells whether a later Release has the same migration.
  if (/\{\s*\[native code\]\s*\}$/.test(Function.prototype.toString.call(each))) {
    const fix = 'Write each: (ctx, document) => ... and call it there'
    throw new DefinitionError(`${owner} each is a bound function, whose code is unknown`, fix)
  }
  return each as Each
}

/** Reads the exports of `migrations.ts`. The generated entry calls it. */
export function readMigrations(module: { readonly [name: string]: unknown }): MigrationsDefinition {
  const { default: named, requires = [], ...others } = module
  const [other] = Object.keys(others)
  if (other !== undefined) {
    const fix = 'Export the migrations as default and the names that must be complete as requires'
    throw new DefinitionError(`migrations.ts exports "${other}"`, fix)
  }
  if (!isPlainObject(named)) {
    const given = named === undefined ? 'has no default export' : `exports ${kindOf(named)}`
    throw new DefinitionError(`migrations.ts ${given}`, `Write: export default ${EXAMPLE}`)
  }
  const entries = Object.entries(named)
  if (entries.length > MIGRATIONS_MAX) {
    const fix = `Keep at most ${MIGRATIONS_MAX}: remove those that are complete everywhere`
    throw new DefinitionError(`migrations.ts has ${entries.length} migrations`, fix)
  }
  const migrations = entries.map(([name, value]) => ({ name, ...contentOf(name, value) }))
  return Object.freeze({ [MIGRATIONS]: { migrations, requires: requiresOf(requires) } })
}

function contentOf(name: string, value: unknown): MigrationContent {
  if (!MIGRATION_NAME.test(name)) {
    throw new DefinitionError(
      `migrations.ts has a migration "${name}"`,
      'Use a letter, then letters, digits and _, at most 64 characters',
    )
  }
  const marked = (typeof value === 'object' && value !== null ? value : {}) as {
    readonly [MIGRATION]?: MigrationContent
  }
  const content = marked[MIGRATION]
  if (content !== undefined) return content
  const fix = `Write ${name}: migration({ table: ..., each: ... })`
  throw new DefinitionError(`migrations.ts ${name} is ${kindOf(value)}, not a migration`, fix)
}

function requiresOf(requires: unknown): readonly string[] {
  if (!Array.isArray(requires)) {
    const fix = 'Write export const requires = ["addPriority"]'
    throw new DefinitionError(`migrations.ts requires is ${kindOf(requires)}`, fix)
  }
  for (const [i, name] of requires.entries()) {
    if (typeof name !== 'string' || !MIGRATION_NAME.test(name)) {
      const shown = typeof name === 'string' ? `"${name}"` : kindOf(name)
      const fix = `Name migrations, such as ${quotedList(['addPriority'])}`
      throw new DefinitionError(`migrations.ts requires lists ${shown}`, fix)
    }
    if (requires.indexOf(name) === i) continue
    throw new DefinitionError(`migrations.ts requires lists "${name}" twice`, 'List each name once')
  }
  return [...requires]
}

/** Decides which documents of a backup fit the schema of a Workspace. */

import type { TableManifest, WorkspaceDescription } from '../../value/manifest.ts'
import { compileProjection, type Projection } from '../../value/projection.ts'
import { ValidationError } from '../../value/validation-error.ts'
import {
  type Check,
  compileValidator,
  type FieldsJson,
  type ValidatorJson,
} from '../../value/validators.ts'
import type { Value, ValueObject } from '../../value/values.ts'

/** The name and the digest of a migration that is complete. */
export interface CompleteMigration {
  readonly name: string
  readonly digest: string
}

interface WorkspaceTable {
  readonly fields: FieldsJson
  readonly check: Check
  readonly projection: Projection
  /** True if a migration will change its documents, which may not fit before. */
  readonly isMigrated: boolean
}

export class WorkspaceTables {
  readonly manifests: readonly TableManifest[]
  readonly #tables: ReadonlyMap<string, WorkspaceTable>

  constructor(description: WorkspaceDescription, complete: readonly CompleteMigration[]) {
    this.manifests = description.tables
    const migrated = migratedTables(description, complete)
    this.#tables = new Map(
      description.tables.map(({ name, fields }) => {
        const json = { type: 'object', fields } as const
        const check = compileValidator(json, { coerce: false, unknown: 'as-read' })
        const projection = compileProjection(fields)
        return [name, { fields, check, projection, isMigrated: migrated.has(name) }]
      }),
    )
  }

  has(table: string): boolean {
    return this.#tables.has(table)
  }

  /**
   * Returns the declared fields of a document, those inside declared objects included; the object
   * itself if it has no others. Calls `onOther` with the path of each other field.
   */
  declared(table: string, fields: ValueObject, onOther: (path: string) => void): ValueObject {
    return declaredOf(this.#tables.get(table)!.fields, fields, { path: '', onOther })
  }

  /** Returns the rule that the document breaks, never with a value; null if it fits. */
  misfit(table: string, fields: ValueObject): string | null {
    const { fields: declared, check, projection, isMigrated } = this.#tables.get(table)!
    if (isMigrated) return null
    try {
      check(projection.read(fields), table)
      return null
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      return `expected ${error.rule} (${declaredPath(declared, table, error.path)})`
    }
  }
}

/** Returns the begin of a path without the names of a record, which are values. */
function declaredPath(declared: FieldsJson, table: string, path: string): string {
  let shown = table
  let fields: FieldsJson | null = declared
  while (fields !== null) {
    const [part, name] = /^\.([A-Za-z0-9_]+)/.exec(path.slice(shown.length)) ?? []
    if (part === undefined || !Object.hasOwn(fields, name!)) break
    shown += part
    const field: FieldsJson[string] = fields[name!]!
    fields = fieldsOf(field.type === 'optional' ? field.inner : field)
  }
  return shown
}

interface Others {
  /** Empty, or the path of the object with a dot. */
  readonly path: string
  readonly onOther: (path: string) => void
}

/** A Release hides the same fields (value/projection.ts); in arrays and unions they do not fit. */
function declaredOf(
  declared: FieldsJson,
  stored: ValueObject,
  { path, onOther }: Others,
): ValueObject {
  const kept = new Map<string, Value>()
  let isSame = true
  for (const [name, value] of stored) {
    if (!Object.hasOwn(declared, name)) {
      onOther(path + name)
      isSame = false
      continue
    }
    const field = declared[name]!
    const fields = fieldsOf(field.type === 'optional' ? field.inner : field)
    const others = { path: `${path}${name}.`, onOther }
    const part = fields !== null && value instanceof Map ? declaredOf(fields, value, others) : value
    isSame &&= part === value
    kept.set(name, part)
  }
  return isSame ? stored : kept
}

function fieldsOf(json: ValidatorJson): FieldsJson | null {
  if (json.type === 'nullable') return fieldsOf(json.inner)
  return json.type === 'object' ? json.fields : null
}

/** Returns the tables whose migrations the first save will run. */
function migratedTables(
  { requires = [], migrations = [] }: WorkspaceDescription,
  complete: readonly CompleteMigration[],
): ReadonlySet<string> {
  const pending = migrations.filter(
    ({ name, digest }) =>
      requires.includes(name) &&
      !complete.some((known) => known.name === name && known.digest === digest),
  )
  return new Set(pending.map(({ table }) => table))
}

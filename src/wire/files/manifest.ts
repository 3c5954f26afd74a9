/** Parses manifests, and descriptions that the code of a Workspace provides (value/manifest.ts). */
import { canonicalJson } from '../../value/canonical-json.ts'
import { CONFIGURATION_NAME } from '../../value/configuration.ts'
import { ROUTES_MAX } from '../../value/http/routes.ts'
import { AUTH_MODES } from '../../value/identities.ts'
import { isTableName } from '../../value/ids.ts'
import {
  type CronManifest,
  DECLARED_ERROR_KINDS,
  ERROR_CODE,
  FIELD_NAME,
  FUNCTION_NAME,
  FUNCTIONS_MAX,
  type FunctionManifest,
  INDEX_FIELDS_MAX,
  INDEX_NAME,
  INDEXES_MAX,
  isHost,
  type MigrationManifest,
  RESERVED_TABLES,
  TABLES_MAX,
  type TableManifest,
  USES_MAX,
  type WorkspaceDescription,
  type WorkspaceManifest,
} from '../../value/manifest.ts'
import {
  BATCH_DOCUMENTS_MAX,
  MIGRATION_NAME,
  MIGRATIONS_MAX,
  REQUIRES_MAX,
} from '../../value/migrations/migrations.ts'
import { cronArguments } from '../../value/scheduling/cron-arguments.ts'
import { parseCronExpression } from '../../value/scheduling/cron-expressions.ts'
import {
  CRON_NAME,
  CRONS_MAX,
  INTERVAL_MILLIS_MAX,
  INTERVAL_MILLIS_MIN,
  isTimeZone,
  OVERLAPS,
} from '../../value/scheduling/crons.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseFields, parseValidator } from '../../value/validator-json.ts'
import { idField, integer, listUpTo, text } from '../fields.ts'
import { parse, prepare } from '../reading/read.ts'
import { rule } from '../rules.ts'
import { declaredSchema, type Infer, type Schema, schema } from '../schema.ts'
import { DigestField, WorkspaceName } from '../workspace.ts'
import { checkHttpRoutes, HttpRouteField } from './http-routes.ts'
import { RetryField } from './retries.ts'

/** Strings sorted by code units, without duplicates. */
function ascending<T extends string>(entry: Schema<T>, max: number): Schema<T[]> {
  return declaredSchema([listUpTo(entry, max), ':', rule('in order, each once', isAscending)])
}

/** Objects sorted by name, without duplicates. */
function byName<T extends { readonly name: string }>(entry: Schema<T>, max: number): Schema<T[]> {
  const fits = (items: readonly T[]): boolean => isAscending(items.map(({ name }) => name))
  return declaredSchema([listUpTo(entry, max), ':', rule('names in order, each once', fits)])
}

function isAscending(texts: readonly string[]): boolean {
  return texts.every((text, i) => i === 0 || texts[i - 1]! < text)
}

/** Validators, or fields with validators, which value/validator-json.ts parses. */
const ValidatorsField = declaredSchema<Json>('unknown')

const FunctionFields = schema({
  name: text(FUNCTION_NAME, 'the name of a Function'),
  visibility: "'public' | 'internal'",
  clients: ascending(schema("'confidential' | 'public'"), 2),
  auth: ['===', ...AUTH_MODES],
  arguments: ValidatorsField,
  returns: ValidatorsField,
  errors: [
    { '[string]': ['===', ...DECLARED_ERROR_KINDS] },
    ':',
    rule('codes such as NOT_FOUND', (errors: object) => {
      return Object.keys(errors).every((code) => ERROR_CODE.test(code))
    }),
  ],
})

const ActionUses = schema({
  network: ascending(schema(['string', ':', rule('a host', isHost)]), USES_MAX),
  secrets: ascending(text(CONFIGURATION_NAME, 'the name of a secret'), USES_MAX),
  'storage?': "'read' | 'write'",
})

const FunctionField = schema([
  [
    { '...': FunctionFields, kind: "'query'", 'compress?': 'false' },
    '|',
    { '...': FunctionFields, kind: "'mutation'" },
  ],
  '|',
  { '...': FunctionFields, kind: "'action'", uses: ActionUses, 'retry?': RetryField },
])

const IndexField = schema({
  name: text(INDEX_NAME, 'the name of an index'),
  fields: [
    listUpTo(schema('string'), INDEX_FIELDS_MAX),
    ':',
    rule('at least one field, each once', (names: readonly string[]) => {
      return names.length > 0 && new Set(names).size === names.length
    }),
  ],
  unique: 'boolean',
})

const TableField = schema({
  name: [
    ['string', ':', rule('a table name', isTableName)],
    ':',
    rule('a free table name', (name: string) => !RESERVED_TABLES.includes(name)),
  ],
  fields: ValidatorsField,
  indexes: byName(IndexField, INDEXES_MAX),
})

const CronFields = schema({
  name: text(CRON_NAME, 'the name of a Cron'),
  function: text(FUNCTION_NAME, 'the name of a Function'),
  /** Stored JSON, which value/scheduling/cron-arguments.ts checks. */
  arguments: declaredSchema<Json>('unknown'),
  overlap: ['===', ...OVERLAPS],
})

const CronField = schema([
  {
    '...': CronFields,
    schedule: 'string',
    timeZone: ['string', ':', rule('UTC or a zone of the IANA database', isTimeZone)],
    everyMillis: 'null',
  },
  '|',
  {
    '...': CronFields,
    schedule: 'null',
    timeZone: 'null',
    everyMillis: integer(INTERVAL_MILLIS_MIN, INTERVAL_MILLIS_MAX),
  },
])

const MigrationField = schema({
  name: text(MIGRATION_NAME, 'the name of a migration'),
  table: 'string',
  index: 'string | null',
  batch: integer(1, BATCH_DOCUMENTS_MAX),
  digest: DigestField,
})

const RequiresField = ascending(text(MIGRATION_NAME, 'the name of a migration'), REQUIRES_MAX)
const isFilled = (items: readonly unknown[]): boolean => items.length > 0

const Description = schema({
  functions: byName(FunctionField, FUNCTIONS_MAX),
  tables: byName(TableField, TABLES_MAX),
  /** Absent rather than empty, so that equal declarations have equal texts. */
  'crons?': [byName(CronField, CRONS_MAX), ':', rule('at least one Cron', isFilled)],
  'migrations?': [
    byName(MigrationField, MIGRATIONS_MAX),
    ':',
    rule('at least one migration', isFilled),
  ],
  'requires?': [RequiresField, ':', rule('at least one name', isFilled)],
  'http?': [byName(HttpRouteField, ROUTES_MAX), ':', rule('at least one route', isFilled)],
})

const Manifest = schema({
  '...': Description,
  version: '1',
  projectId: idField('prj'),
  workspace: WorkspaceName,
  artifact: { digest: DigestField, bytes: integer(0) },
})

/** Parses a manifest. Throws ValidationError, also for text that is not canonical. */
export function parseManifest(text: string): WorkspaceManifest {
  const json = parseStrictJson(text)
  if (canonicalJson(json) !== text) throw new ValidationError('canonical JSON')
  const manifest = parse(Manifest, json)
  return { ...manifest, ...checked(manifest) }
}

/** Creates the schemas of manifests and descriptions, which takes about 40 ms, before their use. */
export function prepareManifests(): void {
  prepare(Manifest)
}

/** Checks every name, bound and cross reference of a description. Throws ValidationError. */
export function parseDescription(json: Json): WorkspaceDescription {
  return checked(parse(Description, json))
}

function checked(description: Infer<typeof Description>): WorkspaceDescription {
  const { functions, tables, crons, migrations, requires, http } = description
  const checkedFunctions = functions.map((item, i): FunctionManifest => {
    const path = `$.functions[${i}]`
    return {
      ...item,
      arguments: parseFields(item.arguments, `${path}.arguments`),
      returns: parseValidator(item.returns, `${path}.returns`),
    }
  })
  const byName = new Map(checkedFunctions.map((item) => [item.name, item]))
  for (const [i, cron] of (crons ?? []).entries()) checkCron(cron, byName, `$.crons[${i}]`)
  for (const [i, migration] of (migrations ?? []).entries()) {
    checkMigration(migration, tables, `$.migrations[${i}]`)
  }
  return {
    functions: checkedFunctions,
    tables: tables.map((table, i) => checkedTable(table, `$.tables[${i}]`)),
    ...(crons !== undefined && { crons }),
    ...(migrations !== undefined && { migrations }),
    ...(requires !== undefined && { requires }),
    ...(http !== undefined && { http: checkHttpRoutes(http, byName) }),
  }
}

function checkMigration(
  migration: MigrationManifest,
  tables: readonly Infer<typeof TableField>[],
  path: string,
): void {
  const table = tables.find(({ name }) => name === migration.table)
  if (table === undefined) throw new ValidationError('a table of the schema', `${path}.table`)
  const { index } = migration
  if (index === null || table.indexes.some(({ name }) => name === index)) return
  throw new ValidationError(`an index of the table ${table.name}`, `${path}.index`)
}

function checkCron(
  cron: CronManifest,
  functions: ReadonlyMap<string, FunctionManifest>,
  path: string,
): void {
  if (cron.schedule !== null) {
    within(`${path}.schedule`, () => parseCronExpression(cron.schedule!))
  }
  within(path, () => cronArguments(cron, functions.get(cron.function)))
}

/** Runs a check whose ValidationError has a path inside of the part. */
function within(path: string, check: () => unknown): void {
  try {
    check()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const inner = error.path.replace(/^\$\.?/, '')
    throw new ValidationError(error.rule, inner === '' ? path : `${path}.${inner}`)
  }
}

function checkedTable(table: Infer<typeof TableField>, path: string): TableManifest {
  const fields = parseFields(table.fields, `${path}.fields`)
  if (!Object.keys(fields).every((name) => FIELD_NAME.test(name))) {
    throw new ValidationError('names of fields', `${path}.fields`)
  }
  for (const [i, index] of table.indexes.entries()) {
    const undeclared = index.fields.findIndex((name) => !Object.hasOwn(fields, name))
    if (undeclared === -1) continue
    throw new ValidationError('a field of the table', `${path}.indexes[${i}].fields[${undeclared}]`)
  }
  return { ...table, fields }
}

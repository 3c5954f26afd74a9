/** The checks of a validation: code against manifest, and schema against a Channel's Release. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { ReleaseCheck } from '../../storage/control/releases.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import type { LoadedRelease } from '../ports.ts'
import { type Refusal, refusalText } from './comparison/refusals.ts'
import { removedTables, SchemaComparison } from './comparison/schema-comparison.ts'

/** Maximum number of names in one detail. */
const NAMES_MAX = 5
/** Maximum length of one detail, in characters. */
const DETAIL_MAX = 500
/** Maximum length of a change with its example and its remedy, in characters. */
const REFUSAL_MAX = 800

/** Compares the manifest with the description that the loaded code returned. */
export function codeChecks(manifest: WorkspaceDescription, described: Json): ReleaseCheck[] {
  let code: WorkspaceDescription
  try {
    code = parseDescription(described)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const { path, rule } = error
    return [failedCheck('load', `the description of the code breaks a rule at ${path}: ${rule}`)]
  }
  const indexes = (description: WorkspaceDescription) =>
    description.tables.flatMap((table) =>
      table.indexes.map((index) => ({ ...index, name: `${table.name}.${index.name}` })),
    )
  const fields = ({ tables }: WorkspaceDescription) =>
    tables.map((table) => ({ name: table.name, fields: table.fields }))
  return [
    passedCheck('load', 'the code loads'),
    compare('code:functions', manifest.functions, code.functions),
    compare('code:tables', fields(manifest), fields(code)),
    compare('code:indexes', indexes(manifest), indexes(code)),
    compare('code:crons', manifest.crons ?? [], code.crons ?? []),
    ...migrationChecks(manifest, code),
    ...httpChecks(manifest, code),
  ]
}

/** Compares the routes of `http.ts`; no check where neither side has any. */
function httpChecks(
  { http: declared = [] }: WorkspaceDescription,
  { http: found = [] }: WorkspaceDescription,
): ReleaseCheck[] {
  if (declared.length + found.length === 0) return []
  return [compare('code:http', declared, found)]
}

/** Compares the migrations; no check where neither side has any. */
function migrationChecks(
  manifest: WorkspaceDescription,
  code: WorkspaceDescription,
): ReleaseCheck[] {
  const listed = ({ migrations = [], requires = [] }: WorkspaceDescription): readonly Named[] => [
    ...migrations,
    ...requires.map((name) => ({ name: `requires ${name}` })),
  ]
  const [declared, found] = [listed(manifest), listed(code)]
  if (declared.length + found.length === 0) return []
  return [compare('code:migrations', declared, found)]
}

/**
 * Returns the failed check of code that could not be loaded. Its detail is the error that the code
 * threw, if any.
 */
export function loadFailure(fault: Fault): ReleaseCheck {
  return failedCheck('load', fault.violations[0]?.rule ?? fault.message)
}

/**
 * Checks that the next Release reaches and reads what the current one writes. Each change that it
 * cannot read, of the first few, is a failed check of its own.
 */
export function compatibilityChecks(next: LoadedRelease, current: LoadedRelease): ReleaseCheck[] {
  const removed = removedTables(next.tables, current.tables)
  const refusals = new SchemaComparison().unreadable({
    reader: next.tables,
    writer: current.tables,
    newer: 'reader',
  })
  return [
    removed.length === 0
      ? passedCheck('against:tables', 'no table was removed')
      : failedCheck('against:tables', `removed: ${listed(removed)}`),
    ...(refusals.length === 0
      ? [passedCheck('against:documents', 'every earlier document fits')]
      : refusals.slice(0, NAMES_MAX).map(refusedCheck)),
  ]
}

function refusedCheck(refusal: Refusal): ReleaseCheck {
  const detail = refusalText(refusal).slice(0, REFUSAL_MAX)
  return { name: 'against:documents', outcome: 'failed', detail }
}

export function isFailed(check: ReleaseCheck): boolean {
  return check.outcome === 'failed'
}

/** Returns PRODUCT_INCOMPATIBLE with a violation for each check that failed. */
export function incompatible(checks: readonly ReleaseCheck[]): Fault {
  const violations = checks
    .filter(isFailed)
    .map(({ name, detail }) => ({ path: `checks.${name}`, rule: detail }))
  return new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

/** Returns the failed checks that a PRODUCT_INCOMPATIBLE names. */
export function failedChecks({ violations }: Fault): ReleaseCheck[] {
  return violations.map(({ path, rule }) => failedCheck(path.replace(/^checks\./, ''), rule))
}

/**
 * Translates a failure of the engine that leaves the Release undecided, so that it can be validated
 * again. Returns PRODUCT_INCOMPATIBLE, PRODUCT_UNAVAILABLE, or the error itself.
 */
export function engineFailure(error: unknown): unknown {
  // A slow machine looks the same as an endless loop.
  if (isFault(error, 'FUNCTION_FAILED', 'LIMIT_EXCEEDED', 'DEADLINE_EXCEEDED')) {
    return incompatible([loadFailure(error)])
  }
  if (isFault(error, 'BUSY', 'UNAVAILABLE')) {
    return new Fault('PRODUCT_UNAVAILABLE', { cause: error, detail: error.detail })
  }
  return error
}

export function passedCheck(name: string, detail: string): ReleaseCheck {
  return { name, outcome: 'passed', detail }
}

/**
 * Cuts the detail at DETAIL_MAX, because names that the code chooses may be as long as a package.
 */
export function failedCheck(name: string, detail: string): ReleaseCheck {
  return { name, outcome: 'failed', detail: detail.slice(0, DETAIL_MAX) }
}

interface Named {
  readonly name: string
}

function compare(name: string, manifest: readonly Named[], code: readonly Named[]): ReleaseCheck {
  const declared = new Map(manifest.map((item) => [item.name, textOf(item)]))
  const found = new Map(code.map((item) => [item.name, textOf(item)]))
  const differing = [...new Set([...declared.keys(), ...found.keys()])].filter(
    (key) => declared.get(key) !== found.get(key),
  )
  if (differing.length === 0) return passedCheck(name, `${code.length} as declared`)
  return failedCheck(name, `the manifest differs from the code: ${listed(differing)}`)
}

function textOf(item: Named): string {
  return canonicalJson(item as unknown as Json)
}

function listed(names: readonly string[]): string {
  const more = names.length - NAMES_MAX
  return names.slice(0, NAMES_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** The checks of a validation: code against manifest, and schema against what a Channel serves. */
import { Fault } from '../../errors/fault.ts'
import type { ReleaseCheck } from '../../storage/control/releases.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import type { LoadedRelease } from '../releases/release-cache.ts'
import { removedTables, SchemaComparison } from './schema-compatibility.ts'

/** Names that one detail spells out. */
const NAMES_MAX = 5
/** Characters of one detail. */
const DETAIL_MAX = 500

/** Whether the manifest says what the code says of itself. */
export function codeChecks(manifest: WorkspaceDescription, described: Json): ReleaseCheck[] {
  let code: WorkspaceDescription
  try {
    code = parseDescription(described)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return [failed('load', `the code declares something else than ${error.rule} at ${error.path}`)]
  }
  const indexes = (description: WorkspaceDescription) =>
    description.tables.flatMap((table) =>
      table.indexes.map((index) => ({ ...index, name: `${table.name}.${index.name}` })),
    )
  const fields = ({ tables }: WorkspaceDescription) =>
    tables.map((table) => ({ name: table.name, fields: table.fields }))
  return [
    passed('load', 'the code loads'),
    compare('code:functions', manifest.functions, code.functions),
    compare('code:tables', fields(manifest), fields(code)),
    compare('code:indexes', indexes(manifest), indexes(code)),
  ]
}

/** The code could not be loaded; where it threw, the violation says what. */
export function loadFailure(fault: Fault): ReleaseCheck {
  return failed('load', fault.violations[0]?.rule ?? fault.message)
}

/** Whether documents that the other Release stored stay within reach and valid. */
export function compatibilityChecks(next: LoadedRelease, current: LoadedRelease): ReleaseCheck[] {
  const removed = removedTables(next.tables, current.tables)
  const refused = new SchemaComparison().refusedDocuments(next.tables, current.tables)
  return [
    removed.length === 0
      ? passed('against:tables', 'no table was removed')
      : failed('against:tables', `removed: ${some(removed)}`),
    refused.length === 0
      ? passed('against:documents', 'every earlier document fits')
      : failed('against:documents', some(refused)),
  ]
}

export function isFailed(check: ReleaseCheck): boolean {
  return check.outcome === 'failed'
}

/** PRODUCT_INCOMPATIBLE with a violation for each check that failed. */
export function incompatible(checks: readonly ReleaseCheck[]): Fault {
  const violations = checks
    .filter(isFailed)
    .map(({ name, detail }) => ({ path: `checks.${name}`, rule: detail }))
  return new Fault('PRODUCT_INCOMPATIBLE', { violations })
}

interface Named {
  readonly name: string
}

function compare(name: string, manifest: readonly Named[], code: readonly Named[]): ReleaseCheck {
  const declared = new Map(manifest.map((item) => [item.name, text(item)]))
  const found = new Map(code.map((item) => [item.name, text(item)]))
  const differing = [...new Set([...declared.keys(), ...found.keys()])].filter(
    (key) => declared.get(key) !== found.get(key),
  )
  if (differing.length === 0) return passed(name, `${code.length} as declared`)
  return failed(name, `the manifest differs from the code: ${some(differing)}`)
}

function text(item: Named): string {
  return canonicalJson(item as unknown as Json)
}

function some(names: readonly string[]): string {
  const more = names.length - NAMES_MAX
  return names.slice(0, NAMES_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function passed(name: string, detail: string): ReleaseCheck {
  return { name, outcome: 'passed', detail }
}

/** Names that code chose may be as long as a package. */
function failed(name: string, detail: string): ReleaseCheck {
  return { name, outcome: 'failed', detail: detail.slice(0, DETAIL_MAX) }
}

/**
 * Binds a redaction file to the schema of the Workspace and to the fields of the stored documents.
 * What cannot be done is an error here, before any document is read.
 */
import { suggestion } from '../../client/command-line/arguments.ts'
import { FILES_TABLE } from '../../value/files/files.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { RESERVED_TABLES } from '../../value/manifest.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import {
  type Declaration,
  documentDeclaration,
  leavesOf,
  namesOf,
  partOf,
  throughArrays,
} from './declarations.ts'
import {
  type FieldRules,
  type Redaction,
  type RedactionFile,
  redactionFault,
} from './redaction-file.ts'

/** Characters of a hash. */
export const HASH_CHARACTERS = 32
/** Bytes of a hash of bytes. */
export const HASH_BYTES = 32

/** The change of a value. */
export type Step =
  | { readonly kind: 'hash' | 'fake'; readonly declaration: Declaration }
  | { readonly kind: 'null' | 'absent' }
  | { readonly kind: 'fields'; readonly fields: ReadonlyMap<string, Step> }

/** The fields of documents by the names of their tables. */
export type RedactionPlan = ReadonlyMap<string, Extract<Step, { readonly kind: 'fields' }>>

export interface KnownTables {
  /** The tables of the Workspace. */
  readonly declared: readonly TableManifest[]
  /** The fields of the documents of the backup. */
  readonly shapes: ReadonlyMap<string, FieldShape>
}

/** Throws REDACTION_INVALID with the path of the first rule that cannot be applied. */
export function planRedaction({ tables }: RedactionFile, known: KnownTables): RedactionPlan {
  const { declared, shapes } = known
  const stored = [...shapes.keys()].filter((name) => !RESERVED_TABLES.includes(name))
  const names = [...new Set([...declared.map(({ name }) => name), ...stored])]
  const plan = new Map<string, Extract<Step, { readonly kind: 'fields' }>>()
  for (const [table, rules] of tables) {
    if (table === FILES_TABLE && !names.includes(table)) {
      throw redactionFault('files are not redacted: "files": "none" leaves them out')
    }
    if (!names.includes(table)) {
      const near = suggestion(table, names)
      throw redactionFault(`neither the Workspace nor the backup has a table ${table}.${near}`)
    }
    const manifest = declared.find(({ name }) => name === table)
    const shape = shapes.get(table) ?? null
    // Without a shape the backup has no document of the table.
    const declaration = documentDeclaration(manifest?.fields ?? null, shape ?? {})
    plan.set(table, fieldsStep(rules, declaration, table))
  }
  return plan
}

function fieldsStep(rules: FieldRules, declaration: Declaration, path: string) {
  const whole = throughArrays(declaration)
  const fields = new Map<string, Step>()
  for (const [name, rule] of rules) {
    const at = `${path}.${name}`
    const part = partOf(whole, name)
    if (part === null) {
      const near = suggestion(name, namesOf(whole))
      const of = name.startsWith('_') ? 'fields of the system stay as they are' : 'no such field'
      throw redactionFault(`${at}: ${of}.${near}`)
    }
    if (typeof rule !== 'string') fields.set(name, fieldsStep(rule, part, at))
    else if (rule === 'null') fields.set(name, { kind: nullOf(part, at) })
    else fields.set(name, { kind: permitted(rule, part, at), declaration: part })
  }
  return { kind: 'fields', fields } as const
}

/** Returns whether the value becomes null or is left out. */
function nullOf(part: NonNullable<ReturnType<typeof partOf>>, at: string): 'null' | 'absent' {
  if (part.acceptsNull) return 'null'
  // A field that only stored documents have may be absent as well.
  if (part.isOptional) return 'absent'
  throw redactionFault(`${at}: the schema has neither v.nullable nor v.optional there`)
}

function permitted(
  redaction: Exclude<Redaction, 'null'>,
  part: Declaration,
  at: string,
): 'hash' | 'fake' {
  // Inside a composite value, IDs and literals stay as they are.
  const isLeaf = part.validators.every(({ type }) => type === 'id' || type === 'literal')
  if (isLeaf && part.validators.length > 0) {
    const what = 'an ID or one of the values that the schema lists'
    throw redactionFault(`${at}: ${what} stays as it is. Use null, or leave the field out`)
  }
  if (redaction === 'hash') {
    for (const leaf of leavesOf(part)) requireHash(leaf, at)
  }
  return redaction
}

function requireHash(leaf: ReturnType<typeof leavesOf>[number], at: string): void {
  switch (leaf.type) {
    case 'string':
      requireRoom(leaf, `${HASH_CHARACTERS} characters`, at)
      break
    case 'bytes':
      requireRoom(leaf, `${HASH_BYTES} bytes`, at)
      break
    case 'any':
    case 'id':
    case 'literal':
    case 'null':
      break
    default:
      throw redactionFault(`${at}: only texts and bytes are hashed, not ${leaf.type}. Use fake`)
  }
}

/** `length` is a number and its unit. */
function requireRoom(
  { maximumLength: maximum }: { readonly maximumLength?: number },
  length: string,
  at: string,
): void {
  if (maximum === undefined || maximum >= Number.parseInt(length, 10)) return
  throw redactionFault(`${at}: a hash has ${length}, and the schema allows ${maximum}. Use fake`)
}

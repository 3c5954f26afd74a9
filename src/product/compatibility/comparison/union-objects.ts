/** Objects as members of unions: those that a document may have, and the cases of one object. */
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import { type Kinds, mayShareValues, type Part, type ValidatorOf } from './value-kinds.ts'

type KindsOf = (part: Part) => Kinds

/** Returns whether an object can fit a member of a union and, through a projection, the writer. */
export function isPossible(member: FieldsJson, written: FieldsJson, kindsOf: KindsOf): boolean {
  return Object.entries(written).every(([name, field]) => {
    const other = Object.hasOwn(member, name) ? member[name] : undefined
    if (other === undefined) return field.type === 'optional'
    if (field.type === 'optional' && other.type === 'optional') return true
    const whole = kindsOf({ json: innerOf(other), isView: false })
    return mayShareValues(whole, kindsOf({ json: innerOf(field), isView: true }))
  })
}

/** Returns whether the writer may return anything to an object that it does not see. */
export function mayKeep(
  members: readonly FieldsJson[],
  records: readonly ValidatorOf<'record'>[],
  written: FieldsJson,
  kindsOf: KindsOf,
): boolean {
  if (records.length > 0) return true
  const isHidden = (name: string) => !Object.hasOwn(written, name)
  if (members.some((fields) => Object.keys(fields).some(isHidden))) return true
  return Object.entries(written).some(([name, field]) => {
    const { any, view } = kindsOf({ json: innerOf(field), isView: true })
    // An open union returns the values that it does not know.
    if (any) return hasOpen(innerOf(field))
    if (view === null) return false
    const inner = members.flatMap((fields) =>
      Object.hasOwn(fields, name) ? [kindsOf({ json: innerOf(fields[name]!), isView: false })] : [],
    )
    return mayKeep(
      inner.flatMap(({ objects }) => objects),
      inner.flatMap((each) => each.records),
      view,
      kindsOf,
    )
  })
}

/** Returns the fields with one of them narrowed, in all ways, where the members differ in it. */
export function splitFields(written: FieldsJson, members: readonly FieldsJson[]): FieldsJson[] {
  for (const [name, field] of Object.entries(written)) {
    const texts = new Set(members.map((fields) => JSON.stringify(fields[name])))
    if (texts.size < 2) continue
    const parts = casesOf(field)
    if (parts.length < 2) continue
    return parts.map((part) => {
      const { [name]: _, ...others } = written
      return part === null ? others : { ...others, [name]: part }
    })
  }
  return []
}

/** Returns null for the case of an absent field. */
function casesOf(field: FieldsJson[string]): (ValidatorJson | null)[] {
  if (field.type !== 'optional') return membersOf(field)
  return field.default === undefined ? [null, field.inner] : membersOf(field.inner)
}

function membersOf(json: ValidatorJson): ValidatorJson[] {
  switch (json.type) {
    case 'union':
      return json.members.flatMap(membersOf)
    case 'open':
      return membersOf(json.inner)
    case 'nullable':
      return [{ type: 'null' }, ...membersOf(json.inner)]
    case 'boolean':
      return [true, false].map((boolean) => ({ type: 'literal', value: { boolean } }))
    default:
      return [json]
  }
}

function hasOpen(json: ValidatorJson): boolean {
  return json.type === 'open' || (json.type === 'nullable' && hasOpen(json.inner))
}

export function innerOf(field: FieldsJson[string]): ValidatorJson {
  return field.type === 'optional' ? field.inner : field
}

/** Declarations: what a schema and the fields of stored documents say about one path. */
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import type { FieldsJson, ValidatorJson } from '../../value/validators.ts'

/** Names every entry of a record. */
export const EVERY_ENTRY = '*'

export type LeafJson = Exclude<
  ValidatorJson,
  { readonly type: 'nullable' | 'open' | 'union' | 'array' | 'object' | 'record' }
>

/** A value of a document: one of its declarations accepts it. */
export interface Declaration {
  /** The declarations without unions; empty for a value that the Workspace does not declare. */
  readonly validators: readonly ValidatorJson[]
  readonly acceptsNull: boolean
  /** The fields that stored documents have there; null if that is unknown. */
  readonly shape: FieldShape | null
}

/** Returns the declaration of a document. `fields` is null for a table without a schema. */
export function documentDeclaration(
  fields: FieldsJson | null,
  shape: FieldShape | null,
): Declaration {
  const validators = fields === null ? [] : [{ type: 'object', fields } as const]
  return { validators, acceptsNull: false, shape }
}

export interface PartDeclaration extends Declaration {
  /** True if the part is declared, and may be absent wherever it is. */
  readonly isOptional: boolean
}

/** Returns the declaration of a field, or of the entries of a record; null if there is none. */
export function partOf(whole: Declaration, name: string): PartDeclaration | null {
  const declared: ValidatorJson[] = []
  let isOptional = true
  let isOpen = false
  for (const validator of whole.validators) {
    if (validator.type === 'any') isOpen = true
    if (validator.type === 'record' && name === EVERY_ENTRY) {
      declared.push(validator.values)
      isOptional = false
    }
    if (validator.type !== 'object' || !Object.hasOwn(validator.fields, name)) continue
    const field = validator.fields[name]!
    isOptional &&= field.type === 'optional'
    declared.push(field.type === 'optional' ? field.inner : field)
  }
  const { shape } = whole
  const isStored = typeof shape === 'object' && shape !== null && Object.hasOwn(shape, name)
  if (declared.length === 0 && !isOpen && !isStored && !isUnknown(whole)) return null
  const part = isStored ? shape[name]! : shape === 'any' ? 'any' : null
  return { ...flatten(declared), shape: part, isOptional }
}

/** Returns the declaration of the items of an array. */
export function itemOf({ validators }: Declaration): Declaration {
  const items = validators.flatMap((validator) =>
    validator.type === 'array' ? [validator.items] : [],
  )
  return { ...flatten(items), shape: null }
}

/** Returns the declaration of an entry of a record or of an object with other names. */
export function entryOf({ validators, shape }: Declaration): Declaration {
  const values = validators.flatMap((validator) =>
    validator.type === 'record' ? [validator.values] : [],
  )
  return { ...flatten(values), shape: shape === 'any' ? 'any' : null }
}

/** Returns the names that the part of a document may have. */
export function namesOf({ validators, shape }: Declaration): string[] {
  const declared = validators.flatMap((validator) => {
    if (validator.type === 'record') return [EVERY_ENTRY]
    return validator.type === 'object' ? Object.keys(validator.fields) : []
  })
  const stored = typeof shape === 'object' && shape !== null ? Object.keys(shape) : []
  return [...new Set([...declared, ...stored])]
}

/** Returns the declaration with items in place of arrays, which have no names of their own. */
export function throughArrays(declaration: Declaration): Declaration {
  const { validators } = declaration
  if (!validators.some(({ type }) => type === 'array')) return declaration
  const items = throughArrays(itemOf(declaration)).validators
  const others = validators.filter(({ type }) => type !== 'array')
  return { ...declaration, validators: [...others, ...items] }
}

/** Returns all declarations of leaves inside the value. */
export function leavesOf({ validators }: Pick<Declaration, 'validators'>): LeafJson[] {
  return validators.flatMap((validator): LeafJson[] => {
    switch (validator.type) {
      case 'nullable':
      case 'open':
        return leavesOf({ validators: [validator.inner] })
      case 'union':
        return leavesOf({ validators: validator.members })
      case 'array':
        return leavesOf({ validators: [validator.items] })
      case 'record':
        return leavesOf({ validators: [validator.values] })
      case 'object': {
        const fields = Object.values(validator.fields)
        return leavesOf({
          validators: fields.map((field) => (field.type === 'optional' ? field.inner : field)),
        })
      }
      default:
        return [validator]
    }
  })
}

/** Nothing is known of what is inside, so that every name may be there. */
function isUnknown({ validators, shape }: Declaration): boolean {
  return shape === 'any' || (validators.length === 0 && shape === null)
}

function flatten(given: readonly ValidatorJson[]): Pick<Declaration, 'validators' | 'acceptsNull'> {
  const validators: ValidatorJson[] = []
  let acceptsNull = given.length > 0
  for (const validator of given) {
    const flat = alternativesOf(validator)
    acceptsNull &&= flat.acceptsNull
    validators.push(...flat.validators)
  }
  return { validators, acceptsNull }
}

function alternativesOf(validator: ValidatorJson): Pick<Declaration, 'validators' | 'acceptsNull'> {
  switch (validator.type) {
    case 'nullable':
      return { ...alternativesOf(validator.inner), acceptsNull: true }
    case 'open':
      return alternativesOf(validator.inner)
    case 'union': {
      const members = validator.members.map(alternativesOf)
      return {
        validators: members.flatMap((member) => member.validators),
        acceptsNull: members.some((member) => member.acceptsNull),
      }
    }
    default: {
      const acceptsNull = validator.type === 'null' || validator.type === 'any'
      return { validators: [validator], acceptsNull }
    }
  }
}

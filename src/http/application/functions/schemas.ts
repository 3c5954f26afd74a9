/** The plain form of a validator as JSON Schema, for generators of clients. */
import { idPrefix, type Of } from '../../../value/plain-json/scalars.ts'
import { isUndecided } from '../../../value/plain-json/undecided.ts'
import { INT64 } from '../../../value/tagged.ts'
import type { FieldsJson, LiteralJson, ValidatorJson } from '../../../value/validators.ts'

export interface JsonSchema {
  readonly [keyword: string]: unknown
}

const TAGGED: JsonSchema = { $ref: '#/components/schemas/TaggedValue' }
const NULL: JsonSchema = { type: 'null' }
/** Integers up to this are JSON numbers. */
const EXACT_MAX = BigInt(Number.MAX_SAFE_INTEGER)

const bounds = (keywords: Readonly<Record<string, unknown>>): JsonSchema => {
  return Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined))
}

/** Returns the schema of the plain form of every value that the validator accepts. */
export function plainSchema(json: ValidatorJson): JsonSchema {
  switch (json.type) {
    case 'any':
      return TAGGED
    case 'null':
    case 'boolean':
      return { type: json.type }
    case 'int64':
      return int64(json)
    case 'float64':
      return { type: 'number', format: 'double', ...bounds(withoutType(json)) }
    case 'string':
      return string(json)
    case 'bytes':
      return {
        type: 'string',
        contentEncoding: 'base64url',
        ...(json.maximumLength !== undefined && {
          maxLength: Math.ceil((json.maximumLength * 4) / 3),
        }),
      }
    case 'timestamp':
      return { type: 'string', format: 'date-time' }
    case 'id':
      return { type: 'string', pattern: `^${idPrefix(json)}_[0-7][0-9A-HJKMNP-TV-Z]{25}$` }
    case 'literal':
      return literal(json.value)
    case 'array':
      return {
        type: 'array',
        items: plainSchema(json.items),
        ...bounds({ maxItems: json.maximumItems }),
      }
    case 'object':
      return objectSchema(json.fields)
    case 'record':
      return {
        type: 'object',
        additionalProperties: plainSchema(json.values),
        ...bounds({ maxProperties: json.maximumItems }),
      }
    case 'nullable':
      return { anyOf: [plainSchema(json.inner), NULL] }
    case 'union':
      return union(json)
    case 'open':
      return open(json)
  }
}

export function objectSchema(fields: FieldsJson): JsonSchema {
  const entries = Object.entries(fields)
  const required = entries.filter(([, { type }]) => type !== 'optional').map(([name]) => name)
  const properties = entries.map(([name, field]) => {
    return [name, plainSchema(field.type === 'optional' ? field.inner : field)] as const
  })
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}

function withoutType({ minimum, maximum }: Of<'float64'>) {
  return { minimum, maximum }
}

function int64({ minimum, maximum }: Of<'int64'>): JsonSchema {
  const isExact = (bound: string | undefined): boolean => {
    if (bound === undefined) return false
    const value = BigInt(bound)
    return value >= -EXACT_MAX && value <= EXACT_MAX
  }
  if (isExact(minimum) && isExact(maximum)) {
    return { type: 'integer', format: 'int64', minimum: Number(minimum), maximum: Number(maximum) }
  }
  return {
    anyOf: [
      { type: 'integer', format: 'int64' },
      { type: 'string', pattern: INT64.source },
    ],
  }
}

function string({ minimumLength, maximumLength, pattern }: Of<'string'>): JsonSchema {
  return {
    type: 'string',
    ...bounds({ minLength: minimumLength, maxLength: maximumLength }),
    ...(pattern !== undefined && { pattern: `^(?:${pattern})$` }),
  }
}

function literal(json: LiteralJson): JsonSchema {
  if ('string' in json) return { type: 'string', const: json.string }
  if ('boolean' in json) return { type: 'boolean', const: json.boolean }
  const value = Number(json.int64)
  return Number.isSafeInteger(value)
    ? { type: 'integer', const: value }
    : { type: 'string', const: json.int64 }
}

function union(json: Of<'union'>): JsonSchema {
  if (isUndecided(json)) return TAGGED
  const { members } = json
  const [first, ...others] = members.map(plainSchema)
  const texts = members.flatMap((member) => {
    return member.type === 'literal' && 'string' in member.value ? [member.value.string] : []
  })
  if (texts.length === members.length) return { type: 'string', enum: [...new Set(texts)] }
  return others.length === 0 ? first! : { anyOf: [first!, ...others] }
}

function open({ inner }: Of<'open'>): JsonSchema {
  if (inner.type === 'union' && isUndecided(inner)) return TAGGED
  const unknown = objectSchema({ unknown: { type: 'literal', value: { boolean: true } } })
  return { anyOf: [plainSchema(inner), unknown] }
}

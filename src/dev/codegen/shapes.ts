/** Shapes of arguments (app-client/shapes.ts): validators without bounds. */
import type { Shape, Shapes } from '../../app-client/shapes.ts'
import type { FieldsJson, ValidatorJson } from '../../value/validators.ts'

export function toShapes(fields: FieldsJson): Shapes {
  const shapes = Object.entries(fields).map(([name, field]) => [
    name,
    field.type === 'optional' ? { optional: shapeOf(field.inner) } : shapeOf(field),
  ])
  return Object.fromEntries(shapes)
}

/** The shape of what stands for a member that this Release does not know. */
const UNKNOWN: Shape = { object: { unknown: { literal: { boolean: true } } } }

function shapeOf(json: ValidatorJson): Shape {
  switch (json.type) {
    case 'id':
      return `id:${json.table}`
    case 'literal':
      return { literal: json.value }
    case 'array':
      return { array: shapeOf(json.items) }
    case 'record':
      return { record: shapeOf(json.values) }
    case 'object':
      return { object: toShapes(json.fields) }
    case 'nullable':
      return { union: ['null', shapeOf(json.inner)] }
    case 'union':
      return { union: json.members.map(shapeOf) }
    case 'open':
      return { union: [shapeOf(json.inner), UNKNOWN] }
    default:
      return json.type
  }
}

/** Formats shapes as source text. */
export function shapesText(shapes: Shapes): string {
  const members = Object.entries(shapes).map(([name, shape]) => {
    const isOptional = typeof shape === 'object' && 'optional' in shape
    const text = isOptional ? `{ optional: ${shapeText(shape.optional)} }` : shapeText(shape)
    return `${keyText(name)}: ${text}`
  })
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

function shapeText(shape: Shape): string {
  if (typeof shape === 'string') return `'${shape}'`
  if ('literal' in shape) return `{ literal: ${JSON.stringify(shape.literal)} }`
  if ('array' in shape) return `{ array: ${shapeText(shape.array)} }`
  if ('record' in shape) return `{ record: ${shapeText(shape.record)} }`
  if ('object' in shape) return `{ object: ${shapesText(shape.object)} }`
  return `{ union: [${shape.union.map(shapeText).join(', ')}] }`
}

/** Formats the key of a member of an object. */
export function keyText(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : JSON.stringify(name)
}

/**
 * The shape that Convex inferred for a table, as `generated_schema.jsonl` has it: a type such as
 * `{"name": string, "age"?: int64 | null}`. It decides what a text of the export is, since int64,
 * bytes and infinite numbers are exported as texts.
 */
import { ValidationError } from '../../../value/validation-error.ts'

export type ConvexShape =
  | { readonly type: 'plain'; readonly kind: TextKind | 'other' | 'unknown' | 'float64' }
  | { readonly type: 'array'; readonly items: Alternatives }
  | { readonly type: 'object'; readonly fields: ReadonlyMap<string, Alternatives> }
  | { readonly type: 'record'; readonly values: Alternatives }

/** The type of the value that a text of the export stands for. */
export type TextKind = 'string' | 'int64' | 'bytes' | 'infinite' | 'nan'

/** The members of a union; a single one where there is none. */
export type Alternatives = readonly ConvexShape[]

export const UNKNOWN: Alternatives = [{ type: 'plain', kind: 'unknown' }]
const DEPTH_MAX = 128

/** Names of plain shapes, in the order in which they are tried. */
const PLAIN: readonly (readonly [string, (ConvexShape & { readonly type: 'plain' })['kind']])[] = [
  ['never', 'other'],
  ['null', 'other'],
  ['int64', 'int64'],
  ['float64', 'float64'],
  ['-inf', 'infinite'],
  ['inf', 'infinite'],
  ['-0', 'other'],
  ['NaN', 'nan'],
  ['normalfloat64', 'other'],
  ['boolean', 'other'],
  ['field_name', 'string'],
  ['string', 'string'],
  ['bytes', 'bytes'],
  ['unknown', 'unknown'],
]

/** Parses a shape. Throws ValidationError. */
export function parseShape(text: string): Alternatives {
  const reader = new ShapeReader(text)
  const shape = reader.union(0)
  reader.end()
  return shape
}

class ShapeReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  union(depth: number): Alternatives {
    if (depth > DEPTH_MAX) throw this.#error('less nesting')
    const members: ConvexShape[] = []
    do members.push(...this.#member(depth))
    while (this.#take(' | '))
    return members
  }

  end(): void {
    if (this.#at !== this.#text.length) throw this.#error('the end')
  }

  #member(depth: number): Alternatives {
    for (const [name, kind] of PLAIN) if (this.#take(name)) return [{ type: 'plain', kind }]
    if (this.#take('{')) return [this.#object(depth)]
    if (this.#take('"')) {
      this.#until('"')
      return [{ type: 'plain', kind: 'string' }]
    }
    if (this.#take('id<')) {
      this.#until('>')
      return [{ type: 'plain', kind: 'string' }]
    }
    if (this.#take('array<')) return [{ type: 'array', items: this.#closed(depth) }]
    if (this.#take('record<')) {
      this.union(depth + 1)
      this.#expect(', ')
      return [{ type: 'record', values: this.#closed(depth) }]
    }
    // Sets and maps, which Convex removed, say in each document what they are.
    if (this.#take('set<')) {
      this.#closed(depth)
      return UNKNOWN
    }
    if (this.#take('map<')) {
      this.union(depth + 1)
      this.#expect(', ')
      this.#closed(depth)
      return UNKNOWN
    }
    throw this.#error('a shape')
  }

  #object(depth: number): ConvexShape {
    const fields = new Map<string, Alternatives>()
    while (!this.#take('}')) {
      if (fields.size > 0) this.#expect(', ')
      this.#expect('"')
      const name = this.#until('"')
      this.#take('?')
      this.#expect(': ')
      fields.set(name, this.union(depth + 1))
    }
    return { type: 'object', fields }
  }

  #closed(depth: number): Alternatives {
    const inner = this.union(depth + 1)
    this.#expect('>')
    return inner
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#error(JSON.stringify(text))
  }

  #until(end: string): string {
    const found = this.#text.indexOf(end, this.#at)
    if (found === -1) throw this.#error(JSON.stringify(end))
    const text = this.#text.slice(this.#at, found)
    this.#at = found + end.length
    return text
  }

  #error(rule: string): ValidationError {
    return new ValidationError(rule, `$ at character ${this.#at}`)
  }
}

/** Returns the shapes that items of a list have. */
export function itemShapes(shapes: Alternatives): Alternatives {
  return shapes.flatMap((shape) => {
    if (shape.type === 'array') return shape.items
    return isUnknown(shape) ? [shape] : []
  })
}

/** Returns the shapes that a field of an object has. */
export function fieldShapes(shapes: Alternatives, name: string): Alternatives {
  return shapes.flatMap((shape) => {
    if (shape.type === 'object') return shape.fields.get(name) ?? []
    if (shape.type === 'record') return shape.values
    return isUnknown(shape) ? [shape] : []
  })
}

/** Returns what every text of these shapes is; null if there are several possibilities. */
export function textKindOf(shapes: Alternatives): TextKind | null {
  const kinds = new Set<TextKind>()
  for (const shape of shapes) {
    if (shape.type !== 'plain' || shape.kind === 'other') continue
    // An infinite number, and one of the several that are not a number.
    if (shape.kind === 'float64' || shape.kind === 'unknown' || shape.kind === 'nan') return null
    kinds.add(shape.kind)
  }
  return kinds.size === 1 ? [...kinds][0]! : null
}

function isUnknown(shape: ConvexShape): boolean {
  return shape.type === 'plain' && shape.kind === 'unknown'
}

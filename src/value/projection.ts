/**
 * Documents as one Release sees them. A stored document may have fields that the Release does not
 * declare, since other Releases write the same documents. A projection hides those fields at the
 * top level and inside objects that declared object fields reach, and returns them to what the
 * Release writes. Arrays, records and members of unions are read as a whole: what a Release does
 * not declare inside them could not be kept apart from what it writes.
 */
import { accepts } from './plain/tags.ts'
import { ValidationError } from './validation-error.ts'
import {
  changesRead,
  compileValidator,
  defaultsOf,
  type FieldsJson,
  type ValidatorJson,
} from './validators.ts'
import { type Value, type ValueObject, valueEquals } from './values.ts'

/** The objects of one kind as one Release sees them. No method changes its arguments. */
export interface Projection {
  /**
   * Returns the declared fields, with the default of each absent one, and `{ unknown: true }` for
   * each value that no member of an open union accepts. Returns the object itself where it has just
   * that. Does not check: a value of another type than declared stays as it is.
   */
  read(stored: ValueObject): ValueObject
  /**
   * Returns `written`, which fits the declaration, with what `read` does not show of `stored`: the
   * hidden fields, and each unknown member where `{ unknown: true }` was written in its place.
   * `stored` is null for a new object. Throws ValidationError for any other `{ unknown: true }`.
   */
  keep(stored: ValueObject | null, written: ValueObject, path: string): ValueObject
  /** Counts the hidden fields, those inside declared objects included. */
  countHidden(stored: ValueObject): number
}

/** A value as one Release sees it, where that differs from the value. */
interface View {
  read(stored: Value): Value
  keep(stored: Value | undefined, written: Value, path: string): Value
  countHidden(stored: Value): number
}

/** Compiles the projection of the fields of a table or of an object. */
export function compileProjection(fields: FieldsJson): Projection {
  const views = new Map<string, View | null>()
  for (const [name, field] of Object.entries(fields)) {
    views.set(name, compileView(field.type === 'optional' ? field.inner : field))
  }
  const defaults = defaultsOf(fields)
  return {
    read: (stored) => readFields(views, defaults, stored),
    keep: (stored, written, path) => keepFields(views, stored, written, path),
    countHidden: (stored) => countHiddenFields(views, stored),
  }
}

/** Returns whether documents may be read as other values than stored, hidden fields aside. */
export function changesReads(fields: FieldsJson): boolean {
  return changesRead({ type: 'object', fields })
}

/** Returns null for values that are read and written as they are. */
function compileView(json: ValidatorJson): View | null {
  switch (json.type) {
    case 'object':
      return objectView(compileProjection(json.fields))
    case 'nullable': {
      const inner = compileView(json.inner)
      return inner === null ? null : nullableView(inner)
    }
    case 'open':
      return openView(json)
    default:
      return changesRead(json) ? wholeView(json) : null
  }
}

function objectView(projection: Projection): View {
  return {
    read: (stored) => (stored instanceof Map ? projection.read(stored) : stored),
    keep: (stored, written, path) => {
      if (!(written instanceof Map)) return written
      return projection.keep(stored instanceof Map ? stored : null, written, path)
    },
    countHidden: (stored) => (stored instanceof Map ? projection.countHidden(stored) : 0),
  }
}

function nullableView(inner: View): View {
  return {
    read: (stored) => (stored === null ? null : inner.read(stored)),
    keep: (stored, written, path) => {
      return written === null ? null : inner.keep(stored ?? undefined, written, path)
    },
    countHidden: (stored) => (stored === null ? 0 : inner.countHidden(stored)),
  }
}

function openView(json: Extract<ValidatorJson, { readonly type: 'open' }>): View {
  const read = compileValidator(json, { coerce: false, unknown: 'as-read' })
  const known = compileValidator(json, { coerce: false, unknown: 'rejected' })
  return {
    read: (stored) => read(stored, '$'),
    keep: (stored, written, path) => {
      if (accepts(known, written)) return written
      // A member may be known but for an open union inside it, so the whole value counts.
      const isUnknown = stored !== undefined && !accepts(known, stored)
      if (isUnknown && valueEquals(read(stored, path), written)) return stored
      const rule = '{ unknown: true } only where the stored document has an unknown member'
      throw new ValidationError(rule, path)
    },
    countHidden: () => 0,
  }
}

/** The view of an array, a record or a union that has defaults or open unions inside. */
function wholeView(json: ValidatorJson): View {
  const read = compileValidator(json, { coerce: false, unknown: 'as-read' })
  return {
    read: (stored) => {
      try {
        return read(stored, '$')
      } catch (error) {
        if (error instanceof ValidationError) return stored
        throw error
      }
    },
    keep: (_, written) => written,
    countHidden: () => 0,
  }
}

function readFields(
  views: ReadonlyMap<string, View | null>,
  defaults: ReadonlyMap<string, Value>,
  stored: ValueObject,
): ValueObject {
  let seen: Map<string, Value> | null = null
  for (const [name, value] of stored) {
    const view = views.get(name)
    if (view === null) continue
    const read = view?.read(value)
    if (read === value) continue
    seen ??= new Map(stored)
    if (read === undefined) seen.delete(name)
    else seen.set(name, read)
  }
  for (const [name, value] of defaults) {
    if (stored.has(name)) continue
    seen ??= new Map(stored)
    seen.set(name, value)
  }
  return seen ?? stored
}

function keepFields(
  views: ReadonlyMap<string, View | null>,
  stored: ValueObject | null,
  written: ValueObject,
  path: string,
): ValueObject {
  const kept = new Map(written)
  for (const [name, value] of written) {
    const view = views.get(name)
    if (view != null) kept.set(name, view.keep(stored?.get(name), value, `${path}.${name}`))
  }
  for (const [name, value] of stored ?? []) {
    if (!views.has(name)) kept.set(name, value)
  }
  return kept
}

function countHiddenFields(views: ReadonlyMap<string, View | null>, stored: ValueObject): number {
  let count = 0
  for (const [name, value] of stored) {
    const view = views.get(name)
    if (view === undefined) count += 1
    else if (view !== null) count += view.countHidden(value)
  }
  return count
}

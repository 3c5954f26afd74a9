/**
 * Documents as one Release sees them. A stored document may have fields that the Release does not
 * declare, since other Releases write the same documents. A projection hides those fields at the
 * top level and inside objects that declared object fields reach, and returns them to what the
 * Release writes. Arrays, records and members of unions are read as a whole: what a Release does
 * not declare inside them could not be kept apart from what it writes.
 */
import { ValidationError } from './validation-error.ts'
import {
  changesRead,
  compileValidator,
  defaultsOf,
  type FieldsJson,
  type ValidatorJson,
} from './validators.ts'
import { VALUE_ENTRIES_MAX, type Value, type ValueObject, valueEquals } from './values.ts'

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
   * hidden fields, and each field with an unknown member that was written back as it was read.
   * `stored` is null for a new object. Throws ValidationError for any other `{ unknown: true }`,
   * and for more fields than an object may have.
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

/** The view of an open union, and of an array, a record or a union that changes reads. */
function wholeView(json: ValidatorJson): View {
  const checkRead = compileValidator(json, { coerce: false, unknown: 'as-read' })
  const checkKnown = compileValidator(json, { coerce: false, unknown: 'rejected' })
  const read = (stored: Value): Value => {
    try {
      return checkRead(stored, '$')
    } catch (error) {
      if (error instanceof ValidationError) return stored
      throw error
    }
  }
  return {
    read,
    keep: (stored, written, path) => {
      try {
        checkKnown(written, path)
        return written
      } catch (error) {
        // What was read and is written back may stand for more than it shows.
        if (stored !== undefined && valueEquals(read(stored), written)) return stored
        throw error
      }
    },
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
  if (kept.size > VALUE_ENTRIES_MAX) {
    const rule = `at most ${VALUE_ENTRIES_MAX} entries, those of other Releases included`
    throw new ValidationError(rule, path)
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

/**
 * Random pairs of schemas, and histories of documents that both write. Goal: where the comparison
 * allows a pair, neither rejects what the other stores, and none loses a field of the other; where
 * it refuses, its example is a document that the writer stores and the reader rejects. Method: the
 * reads and writes of a Release as pure functions of its validators and its projection.
 */
import { afterAll, expect } from 'vitest'
import { fuzz, type Random } from '../../../../testing/fuzzing/fuzz.ts'
import {
  FIELD_NAMES,
  fits,
  randomObject,
  randomObjectPair,
  randomSchema,
  randomValue,
} from '../../../../testing/schemas/random-schemas.ts'
import type { IndexManifest, TableManifest } from '../../../value/manifest.ts'
import { plainToValue } from '../../../value/plain.ts'
import { compileProjection } from '../../../value/projection.ts'
import { encodeStored, fromStoredJson } from '../../../value/stored.ts'
import type { Json } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import {
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from '../../../value/validators.ts'
import { type Value, type ValueObject, valueEquals } from '../../../value/values.ts'
import { type Refusal, refusalText } from './refusals.ts'
import { SchemaComparison } from './schema-comparison.ts'

const PAIRS = 400
const LONG_PAIRS = 100_000
const WRITES = 8
const counts = {
  allowed: 0,
  histories: 0,
  steps: 0,
  refused: 0,
  unexplained: 0,
  reparsed: 0,
  certain: 0,
  stored: 0,
}

afterAll(() => {
  if (process.env.SVC_SEED !== undefined) return
  // With fewer the test would prove nothing.
  expect(counts.allowed).toBeGreaterThan(PAIRS / 10)
  expect(counts.histories).toBeGreaterThan(PAIRS / 50)
  expect(counts.steps).toBeGreaterThan(PAIRS)
  expect(counts.certain).toBeGreaterThan(PAIRS / 20)
  expect(counts.stored).toBeGreaterThan(PAIRS)
  expect(counts.refused).toBeGreaterThan(PAIRS / 10)
  expect(counts.reparsed).toBeGreaterThan(counts.refused / 2)
  expect(counts.unexplained / counts.refused).toBeLessThan(0.02)
})

/** One Release as a pure function of its schema. */
class Model {
  readonly table: TableManifest
  readonly #projection
  readonly #read
  readonly #write
  readonly #json: ValidatorJson

  constructor(table: TableManifest) {
    this.table = table
    this.#projection = compileProjection(table.fields)
    this.#json = { type: 'object', fields: table.fields }
    this.#read = compileValidator(this.#json, { coerce: false, unknown: 'as-read' })
    this.#write = compileValidator(this.#json, { coerce: true, unknown: 'as-kept' })
  }

  read(stored: ValueObject): ValueObject {
    return this.#read(this.#projection.read(stored), '$') as ValueObject
  }

  accepts(stored: ValueObject): boolean {
    return !fails(() => this.read(stored))
  }

  insert(written: ValueObject): ValueObject {
    return this.replace(null, written)
  }

  replace(stored: ValueObject | null, written: ValueObject): ValueObject {
    return this.#projection.keep(stored, this.#write(written, '$') as ValueObject, '$')
  }

  /** Keeps each field that is not named as it is stored. */
  patch(stored: ValueObject, name: string, value: Value | undefined): ValueObject {
    const field = this.table.fields[name]!
    const visible = new Map(this.read(stored))
    if (value === undefined) visible.delete(name)
    else {
      const options = { coerce: true, unknown: 'as-kept' } as const
      const json = field.type === 'optional' ? field.inner : field
      visible.set(name, compileValidator(json, options)(value, name))
    }
    const checked = this.#read(visible, '$') as ValueObject
    const kept = new Map(this.#projection.keep(stored, checked, '$'))
    for (const [other, before] of stored) if (other !== name) kept.set(other, before)
    return kept
  }

  /** Returns the key of a unique index; null for a document without an entry. */
  key({ fields }: IndexManifest, stored: ValueObject): string | null {
    const values = fields.map((name) => {
      const value = stored.get(name)
      const field = this.table.fields[name]
      if (value !== undefined || field?.type !== 'optional') return value
      return field.default === undefined ? undefined : fromStoredJson(field.default)
    })
    if (values.includes(undefined)) return null
    return values.map((value) => encodeStored(value!)).join()
  }

  get uniqueIndexes(): IndexManifest[] {
    return this.table.indexes.filter(({ unique }) => unique)
  }

  hasDuplicates(documents: readonly ValueObject[]): boolean {
    return this.uniqueIndexes.some((index) => {
      const keys = documents.map((each) => this.key(index, each)).filter((key) => key !== null)
      return new Set(keys).size < keys.length
    })
  }
}

function fails(work: () => unknown): boolean {
  try {
    work()
    return false
  } catch (error) {
    if (error instanceof ValidationError) return true
    throw error
  }
}

function randomTable(random: Random, fields: FieldsJson): TableManifest {
  const names = Object.keys(fields)
  const indexes: IndexManifest[] = []
  if (names.length > 0 && random.chance(4)) {
    const used = [...new Set([random.pick(names), random.pick(names)])]
    indexes.push({ name: 'byKey', fields: used, unique: !random.chance(4) })
  }
  return { name: 'notes', fields, indexes }
}

function randomPair(random: Random): [Model, Model] {
  if (random.chance(8)) {
    const [object, whole] = randomObjectPair(random)
    return [new Model(randomTable(random, object)), new Model(randomTable(random, whole))]
  }
  const fields = randomSchema(random)
  let changed = random.chance(10) ? randomSchema(random) : fields
  for (let i = random.below(3); i >= 0; i--) changed = randomSchema(random, changed)
  const one = randomTable(random, fields)
  const other = randomTable(random, changed)
  const isKept = one.indexes.every((index) => index.fields.every((name) => name in changed))
  return [
    new Model(one),
    new Model(isKept && !random.chance(3) ? { ...other, indexes: one.indexes } : other),
  ]
}

function compare(reader: Model, writer: Model): Refusal[] {
  const tables = ({ table }: Model) => new Map([[table.name, table]])
  return new SchemaComparison().conflicts({
    reader: tables(reader),
    writer: tables(writer),
    newer: 'reader',
  })
}

fuzz(
  'Releases that may serve side by side read each other, and a refusal has an example',
  (random) => {
    const [one, other] = randomPair(random)
    const refusals = compare(one, other)
    const reverse = compare(other, one)
    if (refusals.length === 0) checkWrites(random, one, other)
    if (reverse.length === 0) checkWrites(random, other, one)
    if (refusals.length === 0 && reverse.length === 0) checkHistory(random, one, other)
    checkStored(random, one, other)
    checkStored(random, other, one)
    checkRefusals(refusals, one, other)
    checkRefusals(reverse, other, one)
  },
  PAIRS,
  LONG_PAIRS,
)

/** One write after another of a document that both can read. */
function checkWrites(random: Random, reader: Model, writer: Model): void {
  counts.allowed += 1
  for (let i = 0; i < WRITES; i++) {
    const start = randomStored(random, random.chance(2) ? reader : writer)
    const isValid = start !== null && reader.accepts(start) && writer.accepts(start)
    const stored = written(random, writer, isValid ? start : null)
    if (stored === null) continue
    counts.steps += 1
    requireReads(reader, writer, isValid ? start : null, stored)
  }
}

function randomStored(random: Random, model: Model): ValueObject | null {
  const object = randomObject(random, model.table.fields)
  if (object === undefined || fails(() => model.insert(object))) return null
  return model.insert(object)
}

/** Writes of both in one table, from its first document on. */
function checkHistory(random: Random, one: Model, other: Model): void {
  counts.histories += 1
  let documents: ValueObject[] = []
  for (let i = 0; i < 2 * WRITES; i++) {
    const [writer, reader] = random.chance(2) ? [one, other] : [other, one]
    const at = random.below(documents.length + 1)
    const before = documents[at] ?? null
    const stored = written(random, writer, before)
    if (stored === null) continue
    const after = [...documents.slice(0, at), stored, ...documents.slice(at + 1)]
    if (writer.hasDuplicates(after)) continue
    if (reader.hasDuplicates(after)) failed('a unique index is violated', reader, writer, stored)
    requireReads(reader, writer, before, stored)
    documents = after
  }
}

/** Returns what is stored; null if no value to write was found. */
function written(random: Random, model: Model, before: ValueObject | null): ValueObject | null {
  const names = Object.keys(model.table.fields)
  if (before === null || names.length === 0 || random.chance(4)) {
    const object = randomObject(random, model.table.fields)
    if (object === undefined || fails(() => model.insert(object))) return null
    return model.replace(before, object)
  }
  const name = random.pick(names)
  const field = model.table.fields[name]!
  if (field.type === 'optional' && random.chance(4)) return patched(model, before, name, undefined)
  const value = randomValue(random, field.type === 'optional' ? field.inner : field)
  if (value === undefined) return null
  // The code of a Function may return what it read, or a part of it.
  const read = model.read(before)
  const own = read.get(name)
  if (own instanceof Map && value instanceof Map && field.type !== 'optional' && random.chance(2)) {
    const mixed = new Map([...(own as ValueObject), ...(value as ValueObject)])
    if (fits(field, mixed)) return patched(model, before, name, mixed)
  }
  const isOpen = isOpenField(field.type === 'optional' ? field.inner : field)
  if (isOpen && own !== undefined && valueEquals(own, UNKNOWN_MEMBER) && random.chance(2)) {
    return patched(model, before, name, own)
  }
  return patched(model, before, name, value)
}

function isOpenField(json: ValidatorJson): boolean {
  return json.type === 'open' || (json.type === 'nullable' && isOpenField(json.inner))
}

function patched(
  model: Model,
  before: ValueObject,
  name: string,
  value: Value | undefined,
): ValueObject {
  try {
    return model.patch(before, name, value)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return failed(`a patch of ${name} fails: ${error.message}`, model, model, before)
  }
}

function requireReads(
  reader: Model,
  writer: Model,
  before: ValueObject | null,
  stored: ValueObject,
): void {
  if (!reader.accepts(stored)) failed('the reader rejects a document', reader, writer, stored)
  if (!writer.accepts(stored)) failed('the writer rejects its own document', reader, writer, stored)
  if (before === null) return
  const lost = lostField(writer.table.fields, before, stored)
  if (lost !== null) failed(`the hidden field ${lost} is lost`, reader, writer, stored)
}

/** Returns the path of a field that the writer does not see and that changed. */
function lostField(fields: FieldsJson, before: ValueObject, after: ValueObject): string | null {
  for (const [name, value] of before) {
    const field = Object.hasOwn(fields, name) ? fields[name]! : null
    const now = after.get(name)
    if (field === null) {
      if (now === undefined || !valueEquals(value, now)) return name
      continue
    }
    const object = objectOf(field.type === 'optional' ? field.inner : field)
    if (object === null || !(value instanceof Map) || !(now instanceof Map)) continue
    const lost = lostField(object, value as ValueObject, now as ValueObject)
    if (lost !== null) return `${name}.${lost}`
  }
  return null
}

function objectOf(json: ValidatorJson): FieldsJson | null {
  if (json.type === 'nullable') return objectOf(json.inner)
  return json.type === 'object' ? json.fields : null
}

/** A table that need not be looked at has no document that the next Release rejects. */
function checkStored(random: Random, next: Model, previous: Model): void {
  const tables = ({ table }: Model) => new Map([[table.name, table]])
  const comparison = new SchemaComparison()
  if (comparison.uncertainTables(tables(next), tables(previous)).length > 0) return
  counts.certain += 1
  for (let i = 0; i < 2 * WRITES; i++) {
    const object = randomObject(random, (random.chance(2) ? next : previous).table.fields)
    if (object === undefined) continue
    const stored = leftByOthers(random, object)
    if (!previous.accepts(stored)) continue
    counts.stored += 1
    if (!next.accepts(stored)) failed('a stored document is rejected', next, previous, stored)
  }
}

/** Returns the object as Releases with other schemas may have left it, at any depth. */
function leftByOthers(random: Random, object: ValueObject): ValueObject {
  const left = new Map(object)
  for (const [name, value] of object) {
    if (random.chance(6)) left.delete(name)
    else if (value instanceof Map && random.chance(2)) {
      left.set(name, leftByOthers(random, value as ValueObject))
    }
  }
  const values: readonly Value[] = [null, true, 7n, 'other', new Map([['a', 'x']]), []]
  if (random.chance(2)) left.set(random.pick(FIELD_NAMES), random.pick(values))
  return left
}

function checkRefusals(refusals: readonly Refusal[], reader: Model, writer: Model): void {
  for (const refusal of refusals) {
    counts.refused += 1
    const { example } = refusal
    if (example === null) {
      counts.unexplained += 1
      if (process.env.SHOW !== undefined) show(refusalText(refusal), reader, writer, null)
      continue
    }
    if (refusal.change.includes('unique index')) continue
    const json: ValidatorJson = { type: 'object', fields: writer.table.fields }
    let document: ValueObject
    try {
      document = plainToValue(JSON.parse(example) as Json, json) as ValueObject
    } catch {
      // A long example is cut, and one with hidden fields or ambiguous types is not read again.
      continue
    }
    counts.reparsed += 1
    if (!reader.accepts(writer.insert(document))) continue
    // Plain JSON of a union can be of another member than what was written.
    if (!hasAmbiguousTypes(writer.table.fields)) {
      failed(`the example fits: ${refusalText(refusal)}`, reader, writer, document)
    }
  }
}

function hasAmbiguousTypes(fields: FieldsJson): boolean {
  return /"(union|open|any)"/.test(JSON.stringify(fields))
}

function failed(what: string, reader: Model, writer: Model, document: ValueObject): never {
  show(what, reader, writer, document)
  return expect.fail(what)
}

function show(what: string, reader: Model, writer: Model, document: ValueObject | null): void {
  const stored = document === null ? '' : `\ndocument ${encodeStored(document)}`
  const tables = `reader ${JSON.stringify(reader.table)}\nwriter ${JSON.stringify(writer.table)}`
  process.stderr.write(`${what}\n${tables}${stored}\n`)
}

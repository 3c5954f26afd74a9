/**
 * Converts results of Functions from a runner's stored JSON to tagged text in one pass. The result
 * equals `encodeTagged(check(fromStoredJson(json)))` with the coercing check, at a fifth of the
 * cost: no intermediate values are built, and the keys of declared objects are sorted once.
 */
import { decodeBase64Url } from '../base64url.ts'
import { flatText } from '../memory/flat-text.ts'
import { matches } from '../patterns/matcher.ts'
import { fromStoredJson } from '../stored.ts'
import { encodeTagged, floatBits, parseInt64 } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import {
  changesRead,
  codePoints,
  type FieldsJson,
  type LiteralJson,
  type ValidatorJson,
} from '../validators.ts'
import { compareUtf8, VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../values.ts'
import { compileDocument, type EncodeDocument, type EncodedDocument } from './document-encoding.ts'

/**
 * Encodes parsed JSON. `{"$r":0}` in it references the first object of `named`. Returns null if
 * the validator rejects the result. Throws ResultTooLong.
 */
export type EncodeResult = (json: unknown, named?: readonly object[]) => string | null

/** Error of a result whose references expand to too much text. */
export class ResultTooLong extends Error {
  override readonly name = 'ResultTooLong'
}

type Encode = (json: unknown, depth: number) => string | null
type Of<T extends ValidatorJson['type']> = Extract<ValidatorJson, { readonly type: T }>

/** Most characters of expanded references: twice the limit of a result. */
const EXPANDED_CHARACTERS_MAX = 16 * 1024 * 1024
/**
 * Documents of one result that are encoded from their texts. A result that names one document a
 * million times, in unions that reject it, needs its cached text instead.
 */
const COPIES_MAX = 4_096
/** Bound of the cached texts: about two bytes a character, and a hundred bytes for each text. */
const CACHED_CHARACTERS_MAX = 32 * 1024 * 1024
const CACHED_CHARACTERS_EACH = 128

const NULL = '{"type":"null"}'
const TRUE = '{"type":"boolean","value":true}'
const FALSE = '{"type":"boolean","value":false}'

/**
 * Bounds the texts that several encoders keep. An encoder keeps the text of an object for which
 * `isReused` returns true. A new generation starts when the bound is exceeded.
 */
export class EncodedTextCache {
  readonly isReused: (named: object) => boolean
  /** Texts of earlier generations are dropped. */
  generation = 0
  readonly #charactersMax: number
  #characters = 0

  constructor(
    isReused: (named: object) => boolean = () => true,
    charactersMax = CACHED_CHARACTERS_MAX,
  ) {
    this.isReused = isReused
    this.#charactersMax = charactersMax
  }

  add(text: string | null): void {
    this.#characters += CACHED_CHARACTERS_EACH + (text?.length ?? 0)
    if (this.#characters <= this.#charactersMax) return
    this.#characters = 0
    this.generation += 1
  }
}

/** The objects that results may reference. */
export interface NamedObjects {
  /** Returns the parsed JSON of an object. */
  readonly contentOf: (named: object) => unknown
  /** Parses a part of the text of an EncodedDocument; absent where the objects are others. */
  readonly parse?: (text: string) => unknown
}

/** Compiles an encoder. */
export function compileResult(
  validator: ValidatorJson,
  named: NamedObjects = { contentOf: (object) => object },
  cache = new EncodedTextCache(),
): EncodeResult {
  const references = new References(named, cache)
  const encode = compile(validator, references)
  return (json, named = []) => {
    references.begin(named)
    try {
      return encode(json, 0)
    } finally {
      references.begin([])
    }
  }
}

/** Returns the object of `named` that `{"$r":0}` references; null for any other JSON. */
export function findNamed<T extends object>(json: unknown, named: readonly T[]): T | null {
  if (typeof json !== 'object' || json === null || !Object.hasOwn(json, '$r')) return null
  const index = (json as { readonly $r: unknown }).$r
  const isReference = typeof index === 'number' && Object.keys(json).length === 1
  return isReference ? (named[index] ?? null) : null
}

/** The objects that the current result may reference. */
class References {
  readonly objects: NamedObjects
  readonly cache: EncodedTextCache
  /** Characters of the references expanded so far. */
  spent = 0
  /** Count of the documents that were encoded from their texts. */
  copies = 0
  #all: readonly object[] = []

  constructor(objects: NamedObjects, cache: EncodedTextCache) {
    this.objects = objects
    this.cache = cache
  }

  begin(all: readonly object[]): void {
    this.#all = all
    this.spent = 0
    this.copies = 0
  }

  find(json: unknown): object | null {
    return findNamed(json, this.#all)
  }

  spend(characters: number): void {
    this.spent += characters
    if (this.spent > EXPANDED_CHARACTERS_MAX) throw new ResultTooLong()
  }
}

/**
 * Encodes referenced objects: a document from its text where `encodeDocument` can. The texts of the
 * others are cached for their lifetime, since many results reference one.
 */
function withReferences(
  encode: Encode,
  references: References,
  encodeDocument: EncodeDocument | null = null,
): Encode {
  const { cache } = references
  let texts = new WeakMap<object, { readonly depth: number; readonly text: string | null }>()
  let { generation } = cache
  return (json, depth) => {
    const named = references.find(json)
    if (named === null) return encode(json, depth)
    if (encodeDocument !== null && references.copies < COPIES_MAX) {
      references.copies += 1
      const copied = encodeDocument(named as EncodedDocument, depth)
      if (copied !== null) {
        references.spend(copied.length)
        return copied
      }
    }
    if (generation !== cache.generation) {
      texts = new WeakMap()
      generation = cache.generation
    }
    const known = texts.get(named)
    let text =
      known?.depth === depth ? known.text : encode(references.objects.contentOf(named), depth)
    if (known?.depth !== depth && cache.isReused(named)) {
      if (text !== null) text = flatText(text)
      texts.set(named, { depth, text })
      cache.add(text)
    }
    if (text !== null) references.spend(text.length)
    return text
  }
}

/** Accepts what stands for a member that this Release does not know. */
const UNKNOWN: ValidatorJson = {
  type: 'object',
  fields: { unknown: { type: 'literal', value: { boolean: true } } },
}

/** Compiles an encoder; with `exact` one that rejects an absent field that has a default. */
function compile(json: ValidatorJson, references: References, exact = false): Encode {
  switch (json.type) {
    case 'any':
      return any(references)
    case 'null':
      return (value) => (value === null ? NULL : null)
    case 'boolean':
      return (value) => (typeof value === 'boolean' ? (value ? TRUE : FALSE) : null)
    case 'timestamp':
      return timestamp
    case 'int64':
      return int64(json)
    case 'float64':
      return float64(json)
    case 'string':
      return json.pattern === undefined ? string(json) : patterned(string(json), json.pattern)
    case 'bytes':
      return bytes(json)
    case 'id':
      return id(json)
    case 'literal':
      return literal(json.value)
    case 'array':
      return array(compile(json.items, references, exact), json.maximumItems)
    case 'object': {
      const encode = object(json.fields, references, exact)
      return withReferences(encode, references, documentEncoder(json.fields, references, exact))
    }
    case 'record':
      return withReferences(
        record(compile(json.values, references, exact), json.maximumItems),
        references,
      )
    case 'union':
      return union(membersOf(json, references, exact), references)
    case 'open':
      return union(
        [json.inner, UNKNOWN].map((member) => compile(member, references, exact)),
        references,
      )
    case 'nullable': {
      const inner = compile(json.inner, references, exact)
      return (value, depth) => (value === null ? NULL : inner(value, depth))
    }
  }
}

/** Compiles the encoder of documents; null if no document is such an object. */
function documentEncoder(
  fields: FieldsJson,
  references: References,
  exact: boolean,
): EncodeDocument | null {
  const { parse } = references.objects
  if (parse === undefined) return null
  return compileDocument(fields, {
    isInt64,
    idForm,
    compile(validator) {
      const encode = compile(validator, references, exact)
      return (text, depth) => encode(parse(text), depth)
    },
  })
}

/** Returns the encoders of a union in the order in which the check tries its members. */
function membersOf({ members }: Of<'union'>, references: References, exact: boolean) {
  const all = (each: boolean) => members.map((member) => compile(member, references, each))
  return exact || !members.some(changesRead) ? all(exact) : [...all(true), ...all(false)]
}

function any(references: References): Encode {
  const walk: Encode = (json, depth) => {
    if (typeof json !== 'object' || json === null) return plain(json, depth)
    if (Array.isArray(json)) return list(json, depth)
    const [first = '', second] = Object.keys(json)
    const isMark = second === undefined && first[0] === '$' && first[1] !== '$'
    return isMark ? plain(json, depth) : object(json, depth)
  }
  const encode = withReferences(walk, references)
  const list = array(encode)
  const object = record(encode)
  return encode
}

function plain(json: unknown, depth: number): string | null {
  try {
    return encodeTagged(fromStoredJson(json, '', depth))
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

/** Returns the text of a marker such as `$i`; null for any other JSON. */
function marked(json: unknown, mark: string): string | null {
  if (typeof json !== 'object' || json === null || !Object.hasOwn(json, mark)) return null
  const text = (json as { readonly [key: string]: unknown })[mark]
  return typeof text === 'string' && Object.keys(json).length === 1 ? text : null
}

const SHORT_INT64 = /^(?:0|-?[1-9][0-9]{0,17})$/

function isInt64(text: string): boolean {
  if (SHORT_INT64.test(text)) return true
  try {
    parseInt64(text)
    return true
  } catch {
    return false
  }
}

function timestamp(json: unknown): string | null {
  const text = marked(json, '$t') ?? marked(json, '$i')
  return text !== null && isInt64(text) ? `{"type":"timestamp","value":"${text}"}` : null
}

function int64(validator: Of<'int64'>): Encode {
  const minimum = validator.minimum === undefined ? null : BigInt(validator.minimum)
  const maximum = validator.maximum === undefined ? null : BigInt(validator.maximum)
  const bounded = minimum !== null || maximum !== null
  return (json) => {
    const text = marked(json, '$i')
    if (text === null || !isInt64(text)) return null
    if (bounded) {
      const value = BigInt(text)
      if ((minimum !== null && value < minimum) || (maximum !== null && value > maximum))
        return null
    }
    return `{"type":"int64","value":"${text}"}`
  }
}

function float64({ minimum, maximum }: Of<'float64'>): Encode {
  return (json) => {
    if (typeof json !== 'number' || !Number.isFinite(json)) return null
    if (minimum !== undefined && json < minimum) return null
    if (maximum !== undefined && json > maximum) return null
    return `{"type":"float64","value":"${floatBits(json)}"}`
  }
}

function string({ minimumLength: minimum, maximumLength: maximum }: Of<'string'>): Encode {
  return (json) => {
    if (typeof json !== 'string' || !json.isWellFormed()) return null
    if (minimum !== undefined && codePoints(json, minimum) < minimum) return null
    if (maximum !== undefined && json.length > maximum && codePoints(json, maximum) > maximum) {
      return null
    }
    return `{"type":"string","value":${JSON.stringify(json)}}`
  }
}

function patterned(bounded: Encode, pattern: string): Encode {
  const fits = matches(pattern)
  return (json, depth) => {
    const text = bounded(json, depth)
    return text !== null && fits(json as string) ? text : null
  }
}

function bytes({ maximumLength }: Of<'bytes'>): Encode {
  return (json) => {
    const text = marked(json, '$b')
    if (text === null) return null
    try {
      const { length } = decodeBase64Url(text)
      if (maximumLength !== undefined && length > maximumLength) return null
    } catch {
      return null
    }
    return `{"type":"bytes","value":"${text}"}`
  }
}

function idForm(table: string): RegExp {
  return new RegExp(`^${table === 'files' ? 'fil' : table}_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
}

function id({ table }: Of<'id'>): Encode {
  const form = idForm(table)
  return (json) => {
    const text = typeof json === 'string' ? json : marked(json, '$d')
    return text !== null && form.test(text) ? `{"type":"typed_id","value":"${text}"}` : null
  }
}

function literal(value: LiteralJson): Encode {
  if ('string' in value) {
    const text = `{"type":"string","value":${JSON.stringify(value.string)}}`
    return (json) => (json === value.string ? text : null)
  }
  if ('boolean' in value) {
    return (json) => (json === value.boolean ? (value.boolean ? TRUE : FALSE) : null)
  }
  const text = `{"type":"int64","value":"${value.int64}"}`
  return (json) => (marked(json, '$i') === value.int64 ? text : null)
}

function array(encode: Encode, maximumItems = VALUE_ENTRIES_MAX): Encode {
  const most = Math.min(maximumItems, VALUE_ENTRIES_MAX)
  return (json, depth) => {
    if (!Array.isArray(json) || depth >= VALUE_DEPTH_MAX || json.length > most) return null
    let text = ''
    for (let i = 0; i < json.length; i++) {
      const item = encode(json[i], depth + 1)
      if (item === null) return null
      text += i === 0 ? item : `,${item}`
    }
    return `{"type":"array","value":[${text}]}`
  }
}

/** Names of declared fields begin with a letter or `_`, so that stored JSON escapes none. */
function object(fields: FieldsJson, references: References, exact: boolean): Encode {
  const declared = Object.entries(fields)
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, field]) => {
      const hasDefault = field.type === 'optional' && field.default !== undefined
      const optional = field.type === 'optional' && !(exact && hasDefault)
      const encode = compile(field.type === 'optional' ? field.inner : field, references, exact)
      /** The text of the default of an absent field. */
      const absent = hasDefault ? encodeTagged(fromStoredJson(field.default)) : null
      return { name, optional, encode, absent, before: `{"key":${JSON.stringify(name)},"value":` }
    })
  return (json, depth) => {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return null
    if (depth >= VALUE_DEPTH_MAX) return null
    const content = json as { readonly [key: string]: unknown }
    let seen = 0
    let text = ''
    for (const { name, optional, encode, absent, before } of declared) {
      if (!Object.hasOwn(json, name)) {
        if (!optional) return null
        if (absent === null) continue
        references.spend(absent.length)
        text += text === '' ? `${before}${absent}}` : `,${before}${absent}}`
        continue
      }
      const item = encode(content[name], depth + 1)
      if (item === null) return null
      text += text === '' ? `${before}${item}}` : `,${before}${item}}`
      seen += 1
    }
    const all = Object.keys(json).length
    return all === seen && all <= VALUE_ENTRIES_MAX ? `{"type":"object","value":[${text}]}` : null
  }
}

function record(encode: Encode, maximumItems = VALUE_ENTRIES_MAX): Encode {
  const most = Math.min(maximumItems, VALUE_ENTRIES_MAX)
  return (json, depth) => {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return null
    const keys = Object.keys(json)
    if (depth >= VALUE_DEPTH_MAX || keys.length > most) return null
    const content = json as { readonly [key: string]: unknown }
    const entries: [name: string, text: string][] = []
    for (const key of keys) {
      const name = key[0] === '$' ? key.slice(1) : key
      // A single `$` marks a value other than an object.
      const allowed = key[0] !== '$' || key[1] === '$'
      if (!allowed || name === '__proto__' || !name.isWellFormed()) return null
      const item = encode(content[key], depth + 1)
      if (item === null) return null
      entries.push([name, `{"key":${JSON.stringify(name)},"value":${item}}`])
    }
    entries.sort(([a], [b]) => compareUtf8(a, b))
    return `{"type":"object","value":[${entries.map(([, text]) => text).join()}]}`
  }
}

/** Applies the first member that accepts the value. */
function union(members: readonly Encode[], references: References): Encode {
  return (json, depth) => {
    const { spent } = references
    for (const encode of members) {
      const text = encode(json, depth)
      if (text !== null) return text
      // Expansions of a rejected member are not part of the result.
      references.spent = spent
    }
    return null
  }
}

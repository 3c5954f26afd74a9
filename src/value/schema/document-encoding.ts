/**
 * Converts the stored JSON text of a document to tagged text without parsing it: a string and the
 * digits of an integer are the same in both forms, so a document is copied between constant texts.
 */
import { floatBits } from '../tagged.ts'
import type { FieldsJson, ValidatorJson } from '../validators.ts'
import { compareUtf8, VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../values.ts'

/** A stored document. */
export interface EncodedDocument {
  readonly id: string
  readonly createdAtMicros: bigint
  readonly sequence: number
  /** Canonical stored JSON of its fields, those of the system apart. */
  readonly text: string
}

/**
 * Returns the tagged text of a document; null if only the general encoder can decide whether the
 * validator accepts the document.
 */
export type EncodeDocument = (document: EncodedDocument, depth: number) => string | null

/** The parts of the general encoder that the encoder of documents uses. */
export interface GeneralEncoding {
  /** Compiles an encoder of stored JSON text; it returns null for what the validator rejects. */
  compile(validator: ValidatorJson): (text: string, depth: number) => string | null
  /** Returns whether the text is a decimal int64. */
  isInt64(text: string): boolean
  /** The form of the IDs of a table. */
  idForm(table: string): RegExp
}

/** An encoder as two constant texts, and the text between them, which depends on the value. */
interface Part {
  readonly open: string
  readonly close: string
  /** Reads the value at `at` and sets `end`. Returns null as EncodeDocument does. */
  readonly read: (text: string, at: number, depth: number) => string | null
}

interface Field extends Part {
  /** Name and colon in stored JSON. */
  readonly key: string
  readonly isOptional: boolean
  /** Reads a system field instead, which the text does not contain. */
  readonly system: ReadSystemField | null
  /** `open` with the name of the field. */
  readonly first: string
  /** `first` after the end of the declared field before it. */
  readonly next: string
}

/** The end of the value that was read last: an object with both results would cost more. */
let end = 0
/** True if the text contains a backslash, so that not every quote ends a string. */
let hasEscapes = false

const NULL = '{"type":"null"}'
const OBJECT_OPEN = '{"type":"object","value":['
const ARRAY_OPEN = '{"type":"array","value":['
const COMPOSITE_CLOSE = ']}'
const MARK_CLOSE = '"}'
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Compiles the encoder of documents; null if the validator accepts no document. */
export function compileDocument(
  fields: FieldsJson,
  general: GeneralEncoding,
): EncodeDocument | null {
  const system = systemFields(fields, general)
  if (system === null) return null
  const declared = declaredFields(fields, general, system)
  return (document, depth) => {
    const { text } = document
    if (depth >= VALUE_DEPTH_MAX || !text.isWellFormed()) return null
    hasEscapes = text.includes('\\')
    const content = fieldTexts(declared, text, { at: 0, depth, document })
    return content === null || end !== text.length ? null : OBJECT_OPEN + content + COMPOSITE_CLOSE
  }
}

type ReadSystemField = (document: EncodedDocument) => string | null
type SystemFields = ReadonlyMap<string, ReadSystemField>
const NO_SYSTEM_FIELDS: SystemFields = new Map()

/** Returns how system fields are read; null if the validator does not accept those of documents. */
function systemFields(fields: FieldsJson, { idForm }: GeneralEncoding): SystemFields | null {
  const { _createdAt: created, _id: id, _revision: revision } = fields
  if (created?.type !== 'timestamp' || id?.type !== 'id') return null
  if (revision?.type !== 'int64' || !isUnbounded(revision)) return null
  const form = idForm(id.table)
  return new Map<string, ReadSystemField>([
    ['_createdAt', ({ createdAtMicros }) => `${createdAtMicros}`],
    ['_id', (document) => (form.test(document.id) ? document.id : null)],
    ['_revision', ({ sequence }) => `${sequence}`],
  ])
}

function isUnbounded(validator: ValidatorJson): boolean {
  return Object.keys(validator).length === 1
}

/** Returns the fields in the order of the tagged form, which is that of stored JSON too. */
function declaredFields(
  fields: FieldsJson,
  general: GeneralEncoding,
  systemFields = NO_SYSTEM_FIELDS,
): readonly Field[] {
  let close = ''
  return Object.entries(fields)
    .sort(([a], [b]) => compareUtf8(a, b))
    .map(([name, field]) => {
      const part = compile(field.type === 'optional' ? field.inner : field, general)
      // The general encoder adds defaults, which count towards the length of a result.
      const isOptional = field.type === 'optional' && field.default === undefined
      const first = `{"key":${JSON.stringify(name)},"value":${part.open}`
      const next = `${close}},${first}`
      close = part.close
      const key = `${JSON.stringify(name)}:`
      const system = systemFields.get(name) ?? null
      return { ...part, key, isOptional, system, first, next }
    })
}

interface ObjectPosition {
  /** The brace that begins the object. */
  readonly at: number
  readonly depth: number
  /** The document whose fields are read; null for an object inside of one. */
  readonly document: EncodedDocument | null
}

/** Returns the tagged entries of an object, with commas between them. */
function fieldTexts(
  fields: readonly Field[],
  text: string,
  { at: start, depth, document }: ObjectPosition,
): string | null {
  if (text.charCodeAt(start) !== BRACE) return null
  let at = start + 1
  let out = ''
  /** The text that ends the last field; null before the first one. */
  let close: string | null = null
  /** True if the last declared field is present. */
  let follows = false
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i]!
    let value: string | null
    if (field.system !== null && document !== null) value = field.system(document)
    else if (text.startsWith(field.key, at)) {
      value = field.read(text, at + field.key.length, depth + 1)
      at = text.charCodeAt(end) === COMMA ? end + 1 : end
    } else {
      if (!field.isOptional) return null
      follows = false
      continue
    }
    if (value === null) return null
    if (follows) out += field.next
    else out += close === null ? field.first : `${close}},${field.first}`
    out += value
    close = field.close
    follows = true
  }
  if (text.charCodeAt(at) !== BRACE_END) return null
  end = at + 1
  return close === null ? out : `${out}${close}}`
}

function compile(validator: ValidatorJson, general: GeneralEncoding): Part {
  switch (validator.type) {
    case 'null':
      return whole((text, at) => constantAt(text, at, 'null', NULL))
    case 'boolean':
      return whole(
        (text, at) =>
          constantAt(text, at, 'true', '{"type":"boolean","value":true}') ??
          constantAt(text, at, 'false', '{"type":"boolean","value":false}'),
      )
    case 'string':
      if (!isUnbounded(validator)) return parsed(validator, general)
      return { open: '{"type":"string","value":', close: '}', read: stringAt }
    case 'timestamp':
      return marked('timestamp', (text, at) => integerAt(text, at, general))
    case 'int64':
      if (!isUnbounded(validator)) return parsed(validator, general)
      return marked('int64', (text, at) => integerAt(text, at, general))
    case 'id': {
      const form = general.idForm(validator.table)
      return marked('typed_id', (text, at) => {
        const id = markedAt(text, at, '{"$d":"')
        return id !== null && form.test(id) ? id : null
      })
    }
    case 'float64':
      if (!isUnbounded(validator)) return parsed(validator, general)
      return marked('float64', floatAt)
    case 'nullable': {
      const { open, close, read } = compile(validator.inner, general)
      return whole((text, at, depth) => {
        const isNull = constantAt(text, at, 'null', NULL)
        if (isNull !== null) return isNull
        const value = read(text, at, depth)
        return value === null ? null : open + value + close
      })
    }
    case 'array':
      return arrayPart(compile(validator.items, general), validator.maximumItems)
    case 'object': {
      const fields = declaredFields(validator.fields, general)
      return {
        open: OBJECT_OPEN,
        close: COMPOSITE_CLOSE,
        read: (text, at, depth) =>
          depth >= VALUE_DEPTH_MAX ? null : fieldTexts(fields, text, { at, depth, document: null }),
      }
    }
    case 'any':
    case 'bytes':
    case 'literal':
    case 'record':
    case 'union':
    case 'open':
      return parsed(validator, general)
  }
}

function whole(read: Part['read']): Part {
  return { open: '', close: '', read }
}

function marked(type: string, read: Part['read']): Part {
  return { open: `{"type":"${type}","value":"`, close: MARK_CLOSE, read }
}

/** Leaves a value to the general encoder, which parses its text. */
function parsed(validator: ValidatorJson, general: GeneralEncoding): Part {
  const encode = general.compile(validator)
  return whole((text, at, depth) => {
    const stop = valueEnd(text, at)
    if (stop === null) return null
    end = stop
    return encode(text.slice(at, stop), depth)
  })
}

function arrayPart(items: Part, maximumItems = VALUE_ENTRIES_MAX): Part {
  const most = Math.min(maximumItems, VALUE_ENTRIES_MAX)
  const { open, close } = items
  const between = `${close},${open}`
  const read: Part['read'] = (text, start, depth) => {
    if (text.charCodeAt(start) !== BRACKET || depth >= VALUE_DEPTH_MAX) return null
    let at = start + 1
    let out = ''
    let count = 0
    while (text.charCodeAt(at) !== BRACKET_END) {
      const value = items.read(text, at, depth + 1)
      if (value === null || ++count > most) return null
      out += count === 1 ? open : between
      out += value
      at = text.charCodeAt(end) === COMMA ? end + 1 : end
    }
    end = at + 1
    return count === 0 ? out : out + close
  }
  return { open: ARRAY_OPEN, close: COMPOSITE_CLOSE, read }
}

/** Returns `tagged` if the value is the constant. */
function constantAt(text: string, at: number, stored: string, tagged: string): string | null {
  if (!text.startsWith(stored, at)) return null
  end = at + stored.length
  return tagged
}

function stringAt(text: string, at: number): string | null {
  if (text.charCodeAt(at) !== QUOTE) return null
  const quote = closingQuote(text, at)
  if (quote === -1) return null
  end = quote + 1
  const json = text.slice(at, end)
  if (!hasEscapes || !json.includes('\\')) return json
  const value = JSON.parse(json) as string
  return value.isWellFormed() ? JSON.stringify(value) : null
}

/** Returns the position of the quote that ends the string whose first quote is at `at`; else -1. */
function closingQuote(text: string, at: number): number {
  let quote = text.indexOf('"', at + 1)
  while (hasEscapes && quote !== -1 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1)
  return quote
}

function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1
  return (at - first) % 2 === 1
}

/** Returns the text of a marked value; `mark` is its beginning, such as `{"$i":"`. */
function markedAt(text: string, at: number, mark: string): string | null {
  if (!text.startsWith(mark, at)) return null
  const start = at + mark.length
  const quote = text.indexOf('"', start)
  if (text.charCodeAt(quote + 1) !== BRACE_END) return null
  end = quote + 2
  return text.slice(start, quote)
}

/** JavaScript does not distinguish a timestamp from an int64, so a result may have either. */
function integerAt(text: string, at: number, { isInt64 }: GeneralEncoding): string | null {
  const digits = markedAt(text, at, '{"$i":"') ?? markedAt(text, at, '{"$t":"')
  return digits !== null && isInt64(digits) ? digits : null
}

function floatAt(text: string, at: number): string | null {
  const stop = scalarEnd(text, at)
  const value = Number(text.slice(at, stop))
  // A number of stored JSON begins with a digit or a sign; Number accepts more.
  if (!/[-0-9]/.test(text[at] ?? '') || !Number.isFinite(value)) return null
  end = stop
  return floatBits(value)
}

function scalarEnd(text: string, at: number): number {
  let stop = at
  for (; stop < text.length; stop++) {
    const code = text.charCodeAt(stop)
    if (code === COMMA || code === BRACE_END || code === BRACKET_END) break
  }
  return stop
}

/** Returns the position after the value at `at`; null if it does not end. */
function valueEnd(text: string, at: number): number | null {
  let depth = 0
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = closingQuote(text, i)
      if (i === -1) return null
      if (depth === 0) return i + 1
    } else if (code === BRACE || code === BRACKET) depth += 1
    else if (code === BRACE_END || code === BRACKET_END) {
      depth -= 1
      if (depth === 0) return i + 1
    } else if (depth === 0) return scalarEnd(text, i)
  }
  return null
}

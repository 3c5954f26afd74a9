/**
 * Makes patches between two results that are lists (contract/wire.md, Patches of live lists). The
 * entries are compared as texts, so nothing is decoded. The work is linear in the two texts, and
 * n log n for the order of the entries.
 */
import { flatText } from '../../value/memory/flat-text.ts'
import { PATCH_BYTES_MAX, PATCHED_CHARACTERS_MAX } from '../limits.ts'
import { longestIncreasing, movesTo } from './list-moves.ts'

const ARRAY = '{"type":"array","value":['
const OBJECT = '{"type":"object","value":['
/** Nesting at the fields of an object: its brace and its bracket. */
const FIELDS_DEPTH = 2
/** The field of a page that has its documents, as `paginate` returns it. */
const ITEMS = '{"key":"items","value":'
const ID = '{"key":"_id","value":'
/** An ID may be declared as a string; JavaScript does not distinguish them. */
const ID_TYPES = ['{"type":"typed_id","value":', '{"type":"string","value":']
/** A patch is smaller than this share of the state, otherwise the state is sent. */
const SHARE_MAX = 1 / 2

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const BRACKET = 0x5b
const BRACKET_END = 0x5d
const BRACE = 0x7b
const BRACE_END = 0x7d

/** The list of a result. */
interface List {
  /** The path of the array in the result, as JSON. */
  readonly path: string
  /** The positions of the entries in the text: after the bracket, and at the bracket that ends. */
  readonly start: number
  readonly end: number
  /** The texts of the entries by their IDs, in the order of the list; an ID is a JSON string. */
  readonly entries: ReadonlyMap<string, string>
}

/**
 * Returns the fields `path` to `insert` of a patch that makes the result `after` of `before`, both
 * tagged JSON in canonical form. Returns null if the whole state is to be sent: for a result
 * without such a list, with an entry without an `_id` or two with the same one, a change outside of
 * the list, or a patch that is too long.
 */
export function listPatch(before: string, after: string): string | null {
  if (Math.max(before.length, after.length) > PATCHED_CHARACTERS_MAX) return null
  const from = readList(before)
  if (from === null) return null
  const to = readList(after)
  if (to === null || !isRestEqual({ text: before, list: from }, { text: after, list: to })) {
    return null
  }
  const bytesMax = Math.min(PATCH_BYTES_MAX, Buffer.byteLength(after) * SHARE_MAX)
  return patchOf(from, to, bytesMax)
}

interface Located {
  readonly text: string
  readonly list: List
}

/** Returns whether both results are the same but for the entries of the list. */
function isRestEqual(before: Located, after: Located): boolean {
  const head = ({ text, list }: Located) => text.slice(0, list.start)
  const tail = ({ text, list }: Located) => text.slice(list.end)
  return head(before) === head(after) && tail(before) === tail(after)
}

/** Returns the patch; null if it has `bytesMax` bytes or more. */
function patchOf(from: List, to: List, bytesMax: number): string | null {
  const texts = { remove: '', update: '', move: '', insert: '' }
  let length = 0
  const add = (step: keyof typeof texts, text: string): boolean => {
    texts[step] += texts[step] === '' ? text : `,${text}`
    length += text.length
    return length < bytesMax
  }
  /** The positions of the entries that stay, among themselves, by their IDs. */
  const stays = new Map<string, number>()
  for (const id of from.entries.keys()) {
    if (to.entries.has(id)) stays.set(id, stays.size)
    else if (!add('remove', id)) return null
  }
  const order: number[] = []
  let at = 0
  for (const [id, text] of to.entries) {
    const position = stays.get(id)
    if (position === undefined) {
      if (!add('insert', `{"at":${at},"value":${text}}`)) return null
    } else {
      order.push(position)
      if (from.entries.get(id) !== text && !add('update', `{"id":${id},"value":${text}}`)) {
        return null
      }
    }
    at += 1
  }
  const fixed = longestIncreasing(order)
  if (fixed.size < order.length) {
    const ids = [...stays.keys()]
    for (const { position, to } of movesTo(order, fixed)) {
      if (!add('move', `{"id":${ids[position]},"to":${to}}`)) return null
    }
  }
  const { remove, update, move, insert } = texts
  const patch =
    `"path":${from.path},"remove":[${remove}],"update":[${update}],` +
    `"move":[${move}],"insert":[${insert}]`
  // A text that is not flat would keep both results in memory.
  return Buffer.byteLength(patch) < bytesMax ? flatText(patch) : null
}

/** Returns the list of a result; null if it has none that can be patched. */
function readList(text: string): List | null {
  if (text.startsWith(ARRAY)) return readEntries(text, '[]', ARRAY.length)
  if (!text.startsWith(OBJECT)) return null
  let at = OBJECT.length
  while (text.charCodeAt(at) === BRACE) {
    if (text.startsWith(ITEMS, at)) {
      const start = at + ITEMS.length
      return text.startsWith(ARRAY, start)
        ? readEntries(text, '["items"]', start + ARRAY.length)
        : null
    }
    at = nextElement(text, closedAt(text, at, 0))
  }
  return null
}

function readEntries(text: string, path: string, start: number): List | null {
  const entries = new Map<string, string>()
  let at = start
  while (text.charCodeAt(at) !== BRACKET_END) {
    const id = idOf(text, at)
    if (id === null || entries.has(id.text)) return null
    const end = closedAt(text, id.end, FIELDS_DEPTH + 2)
    entries.set(id.text, text.slice(at, end))
    at = nextElement(text, end)
  }
  return { path, start, end: at, entries }
}

/** Returns the ID of an entry with the position after it; null if it has none. */
function idOf(text: string, entry: number): { readonly text: string; readonly end: number } | null {
  if (!text.startsWith(OBJECT, entry)) return null
  let at = entry + OBJECT.length
  while (text.charCodeAt(at) === BRACE) {
    if (text.startsWith(ID, at)) {
      const value = at + ID.length
      const type = ID_TYPES.find((each) => text.startsWith(each, value))
      if (type === undefined) return null
      const start = value + type.length
      const end = stringEnd(text, start) + 1
      return { text: text.slice(start, end), end }
    }
    at = nextElement(text, closedAt(text, at, 0))
  }
  return null
}

function nextElement(text: string, at: number): number {
  return text.charCodeAt(at) === COMMA ? at + 1 : at
}

/** Returns the position after the bracket that ends `depth` levels; with 0, the next value. */
function closedAt(text: string, from: number, depth: number): number {
  let open = depth
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = stringEnd(text, at)
    else if (code === BRACE || code === BRACKET) open += 1
    else if (code === BRACE_END || code === BRACKET_END) {
      open -= 1
      if (open === 0) return at + 1
    }
  }
  return text.length
}

/** Returns the position of the quote that ends the string which begins at `start`. */
function stringEnd(text: string, start: number): number {
  let at = start + 1
  for (let code = text.charCodeAt(at); code !== QUOTE && at < text.length; ) {
    at += code === BACKSLASH ? 2 : 1
    code = text.charCodeAt(at)
  }
  return at
}

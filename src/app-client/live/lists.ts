/**
 * Lists of documents in results: applies the patches of live lists (contract/wire.md, Patches of
 * live lists), and reuses the entries of the value before that have not changed, so that they stay
 * the same objects.
 */
import { VALUE_ENTRIES_MAX } from '../../value/values.ts'
import { responseInvalid } from '../errors.ts'
import { decodeResult } from '../results.ts'

type Fields = { readonly [name: string]: unknown }
type List = readonly unknown[]

/** Returns the list that patches change: the value, or its `items`; null if neither is one. */
export function listOf(value: unknown): List | null {
  const list = Array.isArray(value) ? value : (value as Fields | null)?.items
  return Array.isArray(list) ? list : null
}

/** Returns the value with another list in place of its own. */
export function withList(value: unknown, list: List): unknown {
  return Array.isArray(value) ? list : { ...(value as Fields), items: list }
}

/** Returns the list of the value after a patch. Throws if the patch does not fit the list. */
export function patchedList(value: unknown, before: List, patch: Fields): List {
  const { path, remove, update, move, insert } = patch as Readonly<Record<string, unknown[]>>
  const isPage = !Array.isArray(value)
  if (JSON.stringify(path) !== (isPage ? '["items"]' : '[]')) throw misfit()
  const read = (json: unknown): unknown => decodeResult(json, isPage ? 2 : 1)
  const removed = new Set(remove)
  const updated = new Map((update as Fields[]).map((each) => [each.id, each.value]))
  const list: unknown[] = []
  for (const entry of before) {
    const id = idOf(entry)
    if (removed.delete(id)) continue
    const json = updated.get(id)
    list.push(updated.delete(id) ? reuse(entry, read(json)) : entry)
  }
  if (removed.size + updated.size > 0) throw misfit()
  for (const { id, to } of move as Fields[]) {
    const from = list.findIndex((entry) => idOf(entry) === id)
    if (from < 0) throw misfit()
    putAt(list, to, ...list.splice(from, 1))
  }
  for (const { at, value } of insert as Fields[]) putAt(list, at, read(value))
  const ids = new Set(list.map(idOf))
  if (ids.size < list.length || ids.has(undefined) || list.length > VALUE_ENTRIES_MAX) {
    throw misfit()
  }
  return list
}

function putAt(list: unknown[], at: unknown, ...entries: unknown[]): void {
  if (!Number.isInteger(at) || (at as number) < 0 || (at as number) > list.length) throw misfit()
  list.splice(at as number, 0, ...entries)
}

function misfit(): Error {
  return responseInvalid('a patch that does not fit')
}

/** Returns the ID of an entry; undefined if it has none. */
function idOf(entry: unknown): string | undefined {
  const id = typeof entry === 'object' ? (entry as Fields | null)?._id : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * Returns `before` if both decoded values are equal. Otherwise returns `after`, in which all parts
 * that are equal to their counterpart are replaced by it.
 */
export function reuse(before: unknown, after: unknown): unknown {
  if (typeof before !== 'object' || typeof after !== 'object') {
    return before === after ? before : after
  }
  if (before === null || after === null) return before === after ? before : after
  if (after instanceof Uint8Array) return isEqual(before, after) ? before : after
  if (before instanceof Uint8Array || Array.isArray(before) !== Array.isArray(after)) return after
  const [old, parts] = [before as Record<string, unknown>, after as Record<string, unknown>]
  const byId = new Map(Array.isArray(before) ? before.map((each) => [idOf(each), each]) : [])
  const keys = Object.keys(parts)
  let isSame = Object.keys(old).length === keys.length
  for (const key of keys) {
    const id = Array.isArray(after) ? idOf(parts[key]) : undefined
    parts[key] = reuse(id === undefined ? old[key] : byId.get(id), parts[key])
    isSame &&= Object.hasOwn(old, key) && parts[key] === old[key]
  }
  return isSame ? before : after
}

function isEqual(before: object, after: Uint8Array): boolean {
  if (!(before instanceof Uint8Array) || before.length !== after.length) return false
  return after.every((byte, i) => byte === before[i])
}

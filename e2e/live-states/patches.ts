/** Applies the patches of version 2 to tagged results, apart from the client of applications. */
import type { Json } from '../application.ts'

/** Returns the result that the patch makes of the one before. Throws if it does not fit. */
export function patchedResult(result: Json, patch: Json): Json {
  const { path } = patch
  if (path.length === 0) return { ...result, value: patchedList(result.value, patch) }
  const field = result.value.find(({ key }: Json) => key === path[0])
  if (path.length > 1 || field === undefined) throw new Error(`there is no list at ${path}`)
  const list = { ...field.value, value: patchedList(field.value.value, patch) }
  const value = result.value.map((each: Json) =>
    each === field ? { ...field, value: list } : each,
  )
  return { ...result, value }
}

function patchedList(before: readonly Json[], { remove, update, move, insert }: Json): Json[] {
  const list = [...before]
  for (const id of remove) list.splice(indexOf(list, id), 1)
  for (const { id, value } of update) list[indexOf(list, id)] = value
  for (const { id, to } of move) {
    const [entry] = list.splice(indexOf(list, id), 1)
    put(list, to, entry)
  }
  let last = -1
  for (const { at, value } of insert) {
    if (at <= last) throw new Error(`the insertion at ${at} follows that at ${last}`)
    last = at
    put(list, at, value)
  }
  return list
}

function put(list: Json[], at: number, entry: Json): void {
  if (at > list.length) throw new Error(`${at} is behind the end of the list`)
  list.splice(at, 0, entry)
}

function indexOf(list: readonly Json[], id: string): number {
  const index = list.findIndex(
    ({ value }) => value.find(({ key }: Json) => key === '_id').value.value === id,
  )
  if (index < 0) throw new Error(`${id} is not in the list`)
  return index
}

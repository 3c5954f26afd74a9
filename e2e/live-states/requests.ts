/** Converts changes and Queries to arguments of the Functions, and results to numbers. */
import { fields, id, int64, type Json, object, string } from '../application.ts'
import type { Change, WatchedQuery } from './history.ts'

/** The cursors of the ranks that bound a page. */
export interface Cursors {
  readonly cursor: string | null
  readonly until: string | null
}

export interface LiveResult {
  readonly release: number
  readonly numbers: readonly number[]
  readonly cursor: string | null
  readonly padding: string
}

const array = (value: readonly Json[]) => ({ type: 'array', value })
const NULL = { type: 'null' }
const nullable = (value: string | null) => (value === null ? NULL : string(value))

export function changeArguments(
  { changes, aborts }: { readonly changes: readonly Change[]; readonly aborts: boolean },
  cells: readonly string[],
): Record<string, Json> {
  return {
    changes: array(
      changes.map(({ kind, key, room, rank, value }) => {
        const numbers = { key: int64(key), room: int64(room), rank: int64(rank) }
        return object({ kind: string(kind), value: int64(value), ...numbers })
      }),
    ),
    cells: array(cells.map(id)),
    aborts: { type: 'boolean', value: aborts },
  }
}

export function queryArguments(
  query: WatchedQuery,
  cells: readonly string[],
  { cursor, until }: Cursors,
): Json {
  if (query.name === 'cell') return object({ cell: id(cells[query.key]!) })
  if (query.name === 'page') {
    const bounds = { cursor: nullable(cursor), until: nullable(until) }
    return object({ room: int64(query.room), limit: int64(query.limit), ...bounds })
  }
  const entries = Object.entries(query).filter(([key]) => key !== 'name')
  return object(
    Object.fromEntries(
      entries.map(([key, value]) => [
        key,
        typeof value === 'number' ? int64(value) : string(value as string),
      ]),
    ),
  )
}

export function parseResult(tagged: Json): LiveResult {
  const { release, numbers, items, cursor, padding } = fields(tagged)
  const listed = items.value.flatMap((item: Json) => {
    const { rank, value } = fields(item)
    return [rank, value]
  })
  return {
    release: Number(release.value),
    numbers: [...numbers.value, ...listed].map(({ value }: Json) => Number(value)),
    cursor: cursor.value ?? null,
    padding: padding.value,
  }
}

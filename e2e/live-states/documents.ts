/** A model of the documents of the workload, and the results of its Queries. */
import type { Change, WatchedQuery } from './history.ts'

interface Item {
  readonly key: number
  readonly room: number
  readonly rank: number
  readonly value: number
}

export class Documents {
  readonly #items = new Map<number, Item>()
  readonly #cells = new Map<number, number>()

  apply(changes: readonly Change[]): void {
    for (const change of changes) this.#applyOne(change)
  }

  /** Returns the numbers in the result of the Query. */
  answer(query: WatchedQuery): number[] {
    switch (query.name) {
      case 'cell':
        return [this.#cells.get(query.key) ?? 0]
      case 'item': {
        const item = this.#items.get(query.key)
        return item === undefined ? [] : [item.room, item.rank, item.value]
      }
      case 'total':
        return summaryOf([...this.#items.values()])
      case 'count':
        return summaryOf(this.#room(query.room))
      case 'padded':
      case 'walk':
        return listOf(this.#room(query.room))
      case 'range': {
        const { room, from, to, limit, order } = query
        const found = this.#room(room).filter(({ rank }) => rank >= from && rank < to)
        return listOf((order === 'asc' ? found : found.reverse()).slice(0, limit))
      }
      case 'page': {
        const { room, after, until, limit } = query
        const found = this.#room(room).filter(({ rank }) => rank > (after ?? -1))
        if (until === null) return listOf(found.slice(0, limit))
        return listOf(found.filter(({ rank }) => rank <= until))
      }
    }
  }

  #applyOne({ kind, key, room, rank, value }: Change): void {
    if (kind === 'cell') {
      this.#cells.set(key, value)
      return
    }
    const item = this.#items.get(key)
    if (kind === 'put') this.#items.set(key, { key, room, rank, value })
    else if (item === undefined) return
    else if (kind === 'remove') this.#items.delete(key)
    else if (kind === 'set') this.#items.set(key, { ...item, value })
    else if (kind === 'add') this.#items.set(key, { ...item, value: item.value + value })
    else this.#items.set(key, { ...item, rank })
  }

  /** The items of a room in the order of their ranks. */
  #room(room: number): Item[] {
    const items = [...this.#items.values()].filter((item) => item.room === room)
    return items.sort((a, b) => a.rank - b.rank)
  }
}

function listOf(items: readonly Item[]): number[] {
  return items.flatMap(({ rank, value }) => [rank, value])
}

function summaryOf(items: readonly Item[]): number[] {
  return [items.length, items.reduce((sum, { value }) => sum + value, 0)]
}

/**
 * Optimistic updates. Each is a layer above the states of the server and is applied again to every
 * new state, until that state includes the commit of its Mutation or the Mutation has failed.
 */
import type { WatchedQuery } from './watched-query.ts'

/** Reads and replaces the value of a watched Query; `get` returns undefined where there is none. */
export interface LayerValues {
  get(key: string): unknown
  set(key: string, value: unknown): void
}

export interface Layer {
  readonly apply: (values: LayerValues) => void
  /** The commit of the Mutation; null until it is known. */
  sequence: bigint | null
  /** Keys of the Queries whose values it replaced when it was last applied. */
  readonly touched: Set<string>
}

/** Returns whether the Query shows the effect of the Mutation by itself. */
export function isPassed({ sequence }: Layer, watched: WatchedQuery | undefined): boolean {
  if (sequence === null) return false
  if (watched === undefined || watched.base === null) return true
  return watched.base.sequence === null || watched.base.sequence >= sequence
}

/** Returns the values that layers replace, by key. Throws what a layer throws. */
export function applyLayers(
  layers: readonly Layer[],
  queries: ReadonlyMap<string, WatchedQuery>,
): Map<string, unknown> {
  const replaced = new Map<string, unknown>()
  for (const layer of layers) {
    layer.touched.clear()
    layer.apply({
      get: (key) => (replaced.has(key) ? replaced.get(key) : queries.get(key)?.base?.value),
      set(key, value) {
        const watched = queries.get(key)
        if (watched?.base == null) return
        layer.touched.add(key)
        if (!isPassed(layer, watched)) replaced.set(key, value)
      },
    })
  }
  return replaced
}

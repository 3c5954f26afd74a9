/**
 * Applies optimistic updates. Each is a layer above the states of the server, which is applied to
 * every new state until the state includes the commit of its Mutation, or the Mutation has failed.
 */
import type { WatchedQuery } from './watched-query.ts'

/** Reads and replaces the value of a watched Query; `get` returns undefined without a value. */
export interface LayerValues {
  get(key: string): unknown
  set(key: string, value: unknown): void
}

export interface Layer {
  readonly apply: (values: LayerValues) => void
  /** The commit of the Mutation; null until it is known. */
  sequence: bigint | null
  /** Keys of the Queries whose values the last application of the layer replaced. */
  readonly touched: Set<string>
}

/** Returns whether the state of the Query includes the Mutation. */
export function isPassed({ sequence }: Layer, watched: WatchedQuery | undefined): boolean {
  if (sequence === null) return false
  if (watched === undefined || watched.base === null) return true
  return watched.base.sequence === null || watched.base.sequence >= sequence
}

/** Returns the values that the layers replace, by key. Throws what a layer throws. */
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

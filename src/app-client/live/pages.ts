/**
 * A list in pages, each of which is a watched Query. When the next page is requested, the previous
 * one is watched again up to its end, so that neighbouring pages neither overlap nor leave a gap
 * while documents change.
 */
import type { CallError } from '../errors.ts'
import type { Observation } from './live-queries.ts'
import type { QueryState } from './watched-query.ts'

/** The result of a Function that returns that of `paginate`. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor: string | null
  readonly done: boolean
}

export interface PagedState<Item, Failure = CallError> {
  /** `exhausted` once the last page is loaded. */
  readonly status: 'loading' | 'ready' | 'exhausted' | 'failed'
  /** The items of all loaded pages. */
  readonly items: readonly Item[]
  readonly error: Failure | null
}

export interface PagedObservation<Item, Failure = CallError> {
  current(): PagedState<Item, Failure>
  subscribe(listener: () => void): () => void
  /** Loads the next page. Does nothing while a page is loading, and after the last one. */
  loadMore(): void
}

/** Watches the page after `cursor`, with `limit` items or up to `until`. */
export type WatchPage = (range: {
  readonly cursor: string | null
  readonly until: string | null
}) => Observation<unknown>

interface Part {
  readonly cursor: string | null
  observation: Observation<unknown>
  /** The earlier watch, which is shown until the watch up to the end of the page has a state. */
  shown: Page<unknown> | null
  isBounded: boolean
  undo: () => void
}

export class PagedQuery {
  readonly #watch: WatchPage
  readonly #canBound: boolean
  readonly #listeners = new Set<() => void>()
  readonly #parts: Part[] = []
  #state: PagedState<unknown> = { status: 'loading', items: [], error: null }

  /** `canBound` is true if the Function takes `until`. */
  constructor(watch: WatchPage, canBound: boolean) {
    this.#watch = watch
    this.#canBound = canBound
  }

  current(): PagedState<unknown> {
    return this.#state
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      for (const part of this.#parts) part.undo()
    }
  }

  loadMore(): void {
    const last = this.#parts.at(-1)
    if (this.#state.status !== 'ready' || last?.shown == null) return
    const { cursor } = last.shown
    if (cursor === null) return
    if (this.#canBound) this.#replace(last, { cursor: last.cursor, until: cursor })
    this.#add(cursor)
    this.#update()
  }

  #start(): void {
    if (this.#parts.length === 0) this.#add(null)
    else for (const part of this.#parts) this.#listen(part)
    this.#update()
  }

  #add(cursor: string | null): void {
    const observation = this.#watch({ cursor, until: null })
    const part = { cursor, observation, shown: null, isBounded: false, undo: () => undefined }
    this.#parts.push(part)
    this.#listen(part)
  }

  #replace(part: Part, range: Parameters<WatchPage>[0]): void {
    const { undo } = part
    part.isBounded = true
    part.observation = this.#watch(range)
    this.#listen(part)
    undo()
  }

  #listen(part: Part): void {
    part.undo = part.observation.subscribe(() => this.#update())
  }

  #update(): void {
    const states = this.#parts.map((part): QueryState<unknown> => {
      const state = part.observation.current()
      if (state.status === 'ready') part.shown = state.value as Page<unknown>
      return state
    })
    const failed = states.find(({ status }) => status === 'failed')
    const last = this.#parts.at(-1)?.shown ?? null
    const isLoading = this.#parts.some(({ shown }) => shown === null)
    this.#state = {
      status:
        failed !== undefined
          ? 'failed'
          : isLoading
            ? 'loading'
            : last?.done
              ? 'exhausted'
              : 'ready',
      items: this.#parts.flatMap(({ shown }) => shown?.items ?? []),
      error: failed?.error ?? null,
    }
    for (const listener of [...this.#listeners]) listener()
  }
}

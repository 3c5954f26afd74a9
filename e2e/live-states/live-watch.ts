/** One subscription of a subscriber: puts the parts of its states together and records them. */
import type { Json } from '../application.ts'
import type { ReceivedState, Watch, WatchedQuery } from './history.ts'
import { patchedResult } from './patches.ts'
import { type Cursors, type LiveResult, parseResult } from './requests.ts'

/** A position in a room, as the server and as the model name it. */
export interface PageEnd {
  readonly cursor: string
  readonly rank: number
}

export class LiveWatch implements Watch {
  readonly subscriber: number
  readonly query: WatchedQuery
  readonly cursors: Cursors
  readonly knownBefore: number
  readonly received: Watch['received'][number][] = []
  isFinal = false
  #newest: ReceivedState | null = null
  #newestText = ''
  #result: LiveResult | null = null
  #fragments: string[] = []

  constructor(
    { subscriber, knownBefore }: Pick<Watch, 'subscriber' | 'knownBefore'>,
    { query, cursors }: { readonly query: WatchedQuery; readonly cursors: Cursors },
  ) {
    this.subscriber = subscriber
    this.knownBefore = knownBefore
    this.query = query
    this.cursors = cursors
  }

  get newest(): ReceivedState | null {
    return this.#newest
  }

  /** The sequence up to which the server has called it current; -1 before that. */
  get currentAt(): number {
    const current = this.received.findLast((each) => each.type === 'current')
    return current?.sequence ?? -1
  }

  /** The end of the page that it shows, where that is a full one. */
  get pageEnd(): PageEnd | null {
    const { query } = this
    if (query.name !== 'page' || query.until !== null || this.#result === null) return null
    const { numbers, cursor } = this.#result
    // Each item is its rank and its value.
    const rank = numbers.at(-2)
    return cursor === null || rank === undefined ? null : { cursor, rank }
  }

  /** Takes a `state` or a `patch`. Throws if its parts, its base or its Release do not fit. */
  take(message: Json, release: number): void {
    const text = message.type === 'patch' ? this.#patched(message) : this.#textOf(message)
    if (text === null) return
    const result = parseResult(JSON.parse(text))
    if (result.release !== release) throw new Error(`a result of Release ${result.release}`)
    const { numbers: answer, padding } = result
    const state: ReceivedState = {
      type: 'state',
      release,
      answer,
      padding: padding.length,
      revision: Number(message.revision),
      snapshot: Number(message.snapshotSequence),
      isRepeated: text === this.#newestText,
    }
    this.#newest = state
    this.#newestText = text
    this.#result = result
    this.received.push(state)
  }

  #patched(message: Json): string {
    const base = this.#newest?.revision
    if (message.base !== String(base)) {
      throw new Error(`a patch of revision ${message.base}, not of ${base}`)
    }
    return JSON.stringify(patchedResult(JSON.parse(this.#newestText), message))
  }

  #textOf({ result, part, parts, fragment }: Json): string | null {
    if (part === undefined) return JSON.stringify(result)
    if (part === 1) this.#fragments = []
    this.#fragments.push(fragment)
    if (this.#fragments.length !== part) throw new Error(`part ${part} is out of order`)
    return part === parts ? this.#fragments.join('') : null
  }
}

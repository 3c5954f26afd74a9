/** The history of a run: what was committed, and what each subscription received. */

/** A change of one document. Changes of documents that do not exist do nothing, except `put`. */
export interface Change {
  /** `add` reads the value before it; `cell` changes a document that is read by its ID. */
  readonly kind: 'put' | 'set' | 'add' | 'move' | 'remove' | 'cell'
  /** Unique key of an item, or the position of a cell. */
  readonly key: number
  readonly room: number
  /** Position in its room, unique among all items. */
  readonly rank: number
  readonly value: number
}

/** A Mutation whose outcome is known, with all that it changed. */
export interface Commit {
  readonly sequence: number
  readonly changes: readonly Change[]
}

/** A Query with its arguments. Pages are bounded by ranks in place of their cursors. */
export type WatchedQuery =
  | { readonly name: 'cell'; readonly key: number }
  | { readonly name: 'item'; readonly key: number }
  | { readonly name: 'total' }
  | { readonly name: 'count'; readonly room: number }
  | { readonly name: 'walk'; readonly room: number; readonly limit: number }
  | { readonly name: 'padded'; readonly room: number; readonly bytes: number }
  | {
      readonly name: 'range'
      readonly room: number
      readonly from: number
      readonly to: number
      readonly limit: number
      readonly order: 'asc' | 'desc'
    }
  | {
      readonly name: 'page'
      readonly room: number
      /** Exclusive; null for the first page. */
      readonly after: number | null
      /** Inclusive; null for a page of `limit` items. */
      readonly until: number | null
      readonly limit: number
    }

export interface ReceivedState {
  readonly type: 'state'
  readonly revision: number
  readonly snapshot: number
  /** Number of the Release, which its ID names and its result repeats. */
  readonly release: number
  readonly answer: readonly number[]
  /** Length of the padding in the result. */
  readonly padding: number
  /** True if the text of the result equals that of the previous state. */
  readonly isRepeated: boolean
}

export type Received =
  | ReceivedState
  | { readonly type: 'resync'; readonly reason: string }
  /** A message of the server: the newest state is current up to this sequence. */
  | { readonly type: 'current'; readonly sequence: number }

/** A subscription, from its `subscribe` to its end or the end of its connection. */
export interface Watch {
  readonly subscriber: number
  readonly query: WatchedQuery
  /** The newest sequence that any client knew when it subscribed. */
  readonly knownBefore: number
  readonly received: readonly Received[]
  /** True if the subscription lasted until the end of the run. */
  readonly isFinal: boolean
}

export interface LiveHistory {
  readonly commits: readonly Commit[]
  readonly watches: readonly Watch[]
  /** Number of the Release that the Channel is bound to at the end. */
  readonly finalRelease: number
}

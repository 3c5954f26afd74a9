/** What may be wrong with a history, by its name in Adya's thesis where it has one there. */

export type AnomalyKind =
  /** A cycle of writes alone. */
  | 'G0'
  /** A read of what an aborted transaction wrote. */
  | 'G1a'
  /** A read of what its writer wrote over. */
  | 'G1b'
  /** A cycle of writes and reads of them. */
  | 'G1c'
  /** A cycle with one anti-dependency: read skew, lost update. */
  | 'G-single'
  /** A cycle with several anti-dependencies, each on a document that was read: write skew. */
  | 'G2-item'
  /** The same with a range that did not show a row. */
  | 'G2'
  /** Serializable, but in no order that agrees with the clock. */
  | 'real time'
  /** A transaction that does not see its own writes. */
  | 'internal'
  | 'incompatible orders'
  | 'duplicate append'
  | 'lost append'
  /** A read of what nobody wrote there. */
  | 'unwritten'

export interface Anomaly {
  readonly kind: AnomalyKind
  /** Complete: what contradicts what. */
  readonly text: string
  /** Numbers of the transactions that it shows. */
  readonly transactions: readonly number[]
}

/** The anomalies of a history, by their names in Adya's thesis where they have one. */

export type AnomalyKind =
  /** A cycle of writes alone. */
  | 'G0'
  /** A read of a write of an aborted transaction. */
  | 'G1a'
  /** A read of a value that its writer replaced. */
  | 'G1b'
  /** A cycle of writes and of reads of them. */
  | 'G1c'
  /** A cycle with one anti-dependency: read skew, lost update. */
  | 'G-single'
  /** A cycle with several anti-dependencies on documents that were read: write skew. */
  | 'G2-item'
  /** A cycle with several anti-dependencies, one on a range that did not contain a row. */
  | 'G2'
  /** Serializable, but in no order that agrees with real time. */
  | 'real time'
  /** A transaction that does not see its own writes. */
  | 'internal'
  | 'incompatible orders'
  | 'duplicate append'
  | 'lost append'
  /** A read of a value that no transaction wrote there. */
  | 'unwritten'

export interface Anomaly {
  readonly kind: AnomalyKind
  /** The complete contradiction. */
  readonly text: string
  /** Numbers of the transactions involved. */
  readonly transactions: readonly number[]
}

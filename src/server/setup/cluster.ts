/** The cluster of PostgreSQL that a setup uses, and how its programs reach it. */

export interface Homebrew {
  readonly prefix: string
  /** Name of its user. */
  readonly owner: string
  /** Formula of the cluster, as postgresql@18. */
  readonly formula: string
}

/** A cluster of PostgreSQL: the one that the machine has, or the one that its package creates. */
export interface Cluster {
  /** Null if it does not exist yet. */
  readonly existing: { readonly version: number; readonly name: string } | null
  readonly port: number
  readonly socketDirectory: string
  /** The user of the operating system who is its superuser. */
  readonly superuser: string
  /** Directory of its programs, with a slash at the end; empty for those of the search path. */
  readonly programs: string
  /** Options by which its programs find the socket. */
  readonly options: readonly string[]
  /** Null unless Homebrew brings and starts it. */
  readonly homebrew: Homebrew | null
  /** Facts for the operator. */
  readonly notes: readonly string[]
}

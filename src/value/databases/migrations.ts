/**
 * Numbered changes of the schema of a database, and which programs can use it after them. A change
 * that only adds keeps the database readable for programs of earlier versions, until a later one
 * removes what they read.
 */

export interface Migration {
  /** Number from 1, without gaps. */
  readonly version: number
  readonly name: string
  readonly sql: string
  /**
   * The lowest schema version whose programs read and write the database after the migration; its
   * own version if absent.
   */
  readonly readableFrom?: number
  /** Microseconds that the conversion of one document takes; absent if none is converted. */
  readonly documentMicros?: number
}

/** A migration as a database records it. */
export interface RecordedMigration {
  readonly version: number
  /** Null for migrations that were applied before it was recorded. */
  readonly readableFrom: number | null
}

/** Name of the migration of each database since which `readableFrom` is recorded. */
const RECORDING = 'readable-from'

/** Returns the lowest schema version whose programs can use a database with these migrations. */
export function readableFrom(migrations: readonly Migration[]): number {
  return Math.max(0, ...migrations.map((each) => each.readableFrom ?? each.version))
}

/**
 * Returns whether the programs that use a database at schema version `found` cannot use it after
 * the pending migrations. An empty database, at version 0, has no such programs.
 */
export function isOneWay(migrations: readonly Migration[], found: number): boolean {
  return found > 0 && readableFrom(migrations.slice(found)) > found
}

/**
 * Returns whether a program that knows `known` migrations can use a database that records these
 * too.
 */
export function canUse(known: number, unknown: readonly RecordedMigration[]): boolean {
  return unknown.every((each) => (each.readableFrom ?? each.version) <= known)
}

/** Returns whether the database has a place for `readableFrom` after the migration. */
export function recordsReadableFrom(migrations: readonly Migration[], version: number): boolean {
  return migrations.some((each) => each.name === RECORDING && each.version <= version)
}

/** The first sentence of the comment that a migration begins with. */
export function summaryOf({ sql }: Migration): string {
  const lines = /^(?:-- ?.*\n)+/.exec(sql)?.[0] ?? ''
  const comment = lines.replaceAll(/^-- ?/gm, '').replaceAll('\n', ' ').trim()
  return /^.*?\.(?= [A-Z]|$)/.exec(comment)?.[0] ?? comment
}

/** Names the newest migration of a database that only newer programs can use. */
export function newerDetail(database: string, unknown: readonly RecordedMigration[]): string {
  const newest = Math.max(...unknown.map(({ version }) => version))
  return `${database}: schema version ${newest} is unknown to this program`
}

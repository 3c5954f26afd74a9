/** A stopped installation, and what a test does to it before the doctor examines it. */
import { Database } from 'bun:sqlite'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Environment } from '../harness.ts'

/** The directories of a stopped installation; its root and its state are restored after a fault. */
export interface Site {
  readonly directory: string
  readonly root: string
  readonly state: string
  readonly pepper: string
  /** Runs a statement in the identity database. */
  readonly query: (sql: string) => Promise<unknown>
}

/** A fault may add settings, or run the doctor by another command. */
export interface Effect {
  readonly settings?: Environment
  readonly command?: readonly string[]
  /** Ends what outlives the test. */
  readonly heal?: () => unknown
}

export interface Fault {
  readonly name: string
  /** `ok` for a check that is red without the fault. */
  readonly red: Readonly<Record<string, 'warning' | 'failed' | 'ok'>>
  // biome-ignore lint/suspicious/noConfusingVoidType: most faults have no effect but on files.
  readonly inject: (site: Site) => Promise<Effect | void> | Effect | void
}

const HOURS_AGO = new Date(Date.now() - 5 * 3_600_000)
export const NOBODY = 'f'.repeat(62)

/** Runs statements in a database of the root. */
export function sql({ root }: Site, file: string, ...statements: readonly string[]): void {
  const database = new Database(join(root, file))
  for (const statement of statements) database.run(statement)
  database.run('pragma wal_checkpoint(truncate)')
  database.close()
}

/** Overwrites the last page of a database. */
export function damage(site: Site, file: string): void {
  sql(site, file, 'select 1')
  const path = join(site.root, file)
  const bytes = readFileSync(path)
  bytes.fill(0xa5, bytes.length - 4_096)
  writeFileSync(path, bytes)
}

export function artifactOf({ root }: Site): string {
  const directory = join(root, 'artifacts/sha256')
  const [head] = readdirSync(directory)
  const [tail] = readdirSync(join(directory, head!))
  return join(directory, head!, tail!)
}

/** Stores a file whose name is a digest, five hours ago. */
export function store(root: string, place: string, content: string, name = `ab/${NOBODY}`): void {
  const path = join(root, place, name)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, content, { mode: 0o600 })
  utimesSync(path, HOURS_AGO, HOURS_AGO)
}

export const digestPath = (content: string): string => {
  const hex = new Bun.CryptoHasher('sha256').update(content).digest('hex')
  return `${hex.slice(0, 2)}/${hex.slice(2)}`
}

/** Mounts a file system in memory with few bytes and inodes; null if that is not permitted. */
export function mountSmall(at: string): (() => void) | null {
  mkdirSync(at)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,nr_inodes=500,mode=700', 'none', at])
    return () => execFileSync('umount', [at])
  } catch {
    return null
  }
}

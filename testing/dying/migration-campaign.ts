/** Servers of a migration that are killed, and what their documents must then be. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { KEY_END } from '../../src/documents/key-encoding.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../../src/documents/store.ts'
import { freshDatabase } from '../databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../documents/stores.ts'

const SERVER = join(import.meta.dirname, 'migrating.ts')
const PAGE = 10_000
/** Fewer than a migration has: the first server is killed before its end. */
const FIRST_BATCHES = 10

export interface MigrationCampaign {
  readonly kind: 'sqlite' | 'postgres'
  readonly count: number
  readonly killsMax: number
  /** Milliseconds from the start of the migration to the end of its server. */
  readonly nextKillMillis: () => number
  /** Names the seed in failures. */
  readonly label: string
}

/** Runs one server and kills it `killMillis` after it started. Returns its output. */
function serve(args: readonly string[], killMillis: number | null): Promise<string> {
  const child = spawn(process.execPath, [SERVER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    if (output === '' && killMillis !== null) setTimeout(() => child.kill('SIGKILL'), killMillis)
    output += chunk.toString()
  })
  return new Promise((resolve) => {
    child.on('close', () => resolve(output))
  })
}

/** Counts the documents by the number of their passes. */
async function passesOf(store: DocumentStore): Promise<Map<string, number>> {
  const { id } = store
    .listIndexes()
    .find(({ table, fields }) => table === 'tasks' && fields.length === 0)!
  const passes = new Map<string, number>()
  for (let lower = ''; ; ) {
    const snapshot = store.latestSequence
    const range = { index: id, lower, upper: KEY_END, order: 'asc', limit: PAGE } as const
    const { documents, exhausted } = await store.range({ ...range, textUnitsMax: 1e9, snapshot })
    for (const { document } of documents) {
      const times = (JSON.parse(document.text) as { passes?: { $i: string } }).passes?.$i ?? '0'
      passes.set(times, (passes.get(times) ?? 0) + 1)
    }
    if (exhausted) return passes
    lower = `${documents.at(-1)!.key}\0`
  }
}

/** Kills servers until the migration is complete. Returns the number of kills. */
export async function runMigrationCampaign(campaign: MigrationCampaign): Promise<number> {
  const { kind, count, killsMax, nextKillMillis, label } = campaign
  const directory = mkdtempSync(join(tmpdir(), 'svc-migrating-'))
  const database = kind === 'sqlite' ? null : await freshDatabase(DOCUMENT_TEMPLATE)
  const args = [directory, String(count), ...(database === null ? [] : [database.url])]
  try {
    let kills = 0
    for (;;) {
      const batches = kills === 0 ? FIRST_BATCHES : Number.POSITIVE_INFINITY
      const killMillis = kills < killsMax ? nextKillMillis() : null
      const output = await serve([String(batches), ...args], killMillis)
      const ended = /finished (\w+) (\d+) (\d+)/.exec(output)
      if (ended !== null) {
        expect(ended.slice(1), label).toEqual(['complete', String(count), String(count)])
        break
      }
      kills += 1
    }
    const store =
      database === null
        ? await openSqliteDocuments(join(directory, 'documents.db'))
        : await openDocuments(database.url, {
            databaseId: readFileSync(join(directory, 'database-id'), 'utf8'),
          })
    expect(await passesOf(store), label).toEqual(new Map([['1', count]]))
    await store.close()
    return kills
  } finally {
    await database?.drop()
    rmSync(directory, { recursive: true, force: true })
  }
}

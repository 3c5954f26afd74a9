/** Servers of scheduled work that are killed, and what their documents and effects must then be. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { KEY_END } from '../../src/documents/key-encoding.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore } from '../../src/documents/store.ts'
import { type ScheduledWork, workOf } from '../../src/engine/scheduled-work/scheduled-documents.ts'
import { freshDatabase } from '../databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../documents/stores.ts'

const SERVER = join(import.meta.dirname, 'scheduling.ts')

export interface Campaign {
  readonly kind: 'SQLite' | 'PostgreSQL'
  /** Pieces of each kind: Mutations and Actions. */
  readonly count: number
  readonly times: number
  readonly spreadMillis: number
  readonly killsMax: number
  /** Milliseconds from the start of a server to its end. */
  readonly nextKillMillis: () => number
  /** Names the seed in failures. */
  readonly label: string
}

/** Runs one server; kills it `killMillis` after its first output. Returns whether it finished. */
function serve(args: readonly string[], killMillis: number | null): Promise<boolean> {
  const child = spawn(process.execPath, [SERVER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    if (output === '' && killMillis !== null) setTimeout(() => child.kill('SIGKILL'), killMillis)
    output += chunk.toString()
  })
  return new Promise((resolve) => {
    child.on('close', () => resolve(output.includes('finished')))
  })
}

async function documentsOf(store: DocumentStore, table: string) {
  const index = store
    .listIndexes()
    .find((each) => each.table === table && each.fields.length === 0)!
  const found = []
  for (let lower = ''; ; ) {
    const { documents, exhausted } = await store.range({
      index: index.id,
      lower,
      upper: KEY_END,
      order: 'asc',
      limit: 10_000,
      textUnitsMax: 1e9,
      snapshot: store.latestSequence,
    })
    found.push(...documents.map(({ document }) => document))
    if (exhausted) return found
    lower = `${documents.at(-1)!.key}\0`
  }
}

function repeated(texts: readonly string[]): readonly string[] {
  const seen = new Set<string>()
  return texts.filter((text) => seen.size === seen.add(text).size)
}

/** Kills servers until one finishes, then checks that nothing was lost, repeated or run early. */
export async function runCampaign(campaign: Campaign): Promise<void> {
  const { kind, count, times, spreadMillis, killsMax, nextKillMillis, label } = campaign
  const directory = mkdtempSync(join(tmpdir(), 'svc-scheduled-'))
  const database = kind === 'SQLite' ? null : await freshDatabase(DOCUMENT_TEMPLATE)
  const sizes = [count, times, spreadMillis].map(String)
  const args = [directory, ...sizes, ...(database === null ? [] : [database.url])]
  try {
    let kills = 0
    const isKilled = () => kills < killsMax
    // The first server waits for its kill, also if a busy machine kills it late.
    const endOf = () => (kills === 0 ? 'waits' : 'ends')
    while (!(await serve([endOf(), ...args], isKilled() ? nextKillMillis() : null))) kills += 1
    expect(kills, label).toBeGreaterThan(0)
    const store =
      database === null
        ? await openSqliteDocuments(join(directory, 'documents.db'))
        : await openDocuments(database.url, {
            databaseId: readFileSync(join(directory, 'database-id'), 'utf8'),
          })
    // The last server may have ended right after a time of the Cron.
    const works = (await documentsOf(store, 'sch'))
      .map(workOf)
      .filter(({ source, state }) => source === 'function' || state !== 'pending')
    const marks = (await documentsOf(store, 'marks')).map(({ text }) => text)
    await store.close()
    const acted = readFileSync(join(directory, 'effects'), 'utf8').trimEnd().split('\n')
    checkWorks(works, { count, label })
    const ticks = marks.filter((text) => text.includes('tick'))
    const pieces = marks.filter((text) => !text.includes('tick'))
    expect(repeated(pieces), label).toEqual([])
    expect(pieces).toHaveLength(count)
    // Each time of the Cron is one piece, and each piece one run.
    const cronWorks = works.filter(({ source }) => source === 'cron')
    expect(ticks, label).toHaveLength(cronWorks.length)
    const dueTimes = cronWorks.map(({ dueAtMicros }) => String(dueAtMicros))
    expect(repeated(dueTimes), label).toEqual([])
    expect(repeated(acted), label).toEqual([])
    const succeeded = works.filter((work) => work.kind === 'action' && work.state === 'succeeded')
    expect(acted.length).toBeGreaterThanOrEqual(succeeded.length)
  } finally {
    await database?.drop()
    rmSync(directory, { recursive: true, force: true })
  }
}

function checkWorks(
  works: readonly ScheduledWork[],
  { count, label }: Pick<Campaign, 'count' | 'label'>,
): void {
  expect(works.filter(({ source }) => source === 'function')).toHaveLength(2 * count)
  const early = works.filter(({ dueAtMicros, finishedAtMicros }) => finishedAtMicros! < dueAtMicros)
  expect(early, label).toEqual([])
  const states = new Set(works.map((work) => `${work.kind} ${work.state} ${work.lastErrorCode}`))
  expect([...states].toSorted().slice(-2)).toEqual([
    'action succeeded null',
    'mutation succeeded null',
  ])
  // Actions that a kill interrupted fail; no other state is left.
  expect([...states].filter((state) => !state.endsWith('succeeded null'))).toEqual(
    states.size === 3 ? ['action failed RESULT_UNCERTAIN'] : [],
  )
}

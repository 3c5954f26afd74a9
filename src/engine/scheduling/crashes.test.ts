/** Scheduled work across servers that are killed: nothing is lost, no Mutation runs twice. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../../build/testing/databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../build/testing/documents/stores.ts'
import { Random } from '../../../build/testing/fuzzing/fuzz.ts'
import { SEED } from '../../../build/testing/seeds.ts'
import { KEY_END } from '../../documents/key-encoding.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { workOf } from './scheduled-documents.ts'

const SERVER = join(import.meta.dirname, '../../../build/testing/dying/scheduling.ts')
const COUNT = 150
const KILLS = 5

/** Runs one server; kills it so many milliseconds after it started. Returns whether it finished. */
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
  const { documents } = await store.range({
    ...{ index: index.id, lower: '', upper: KEY_END, order: 'asc', limit: 10_000 },
    ...{ textUnitsMax: 1e9, snapshot: store.latestSequence },
  })
  return documents.map(({ document }) => document)
}

function repeated(texts: readonly string[]): readonly string[] {
  return texts.filter((text, i) => texts.indexOf(text) !== i)
}

test.each(['SQLite', 'PostgreSQL'])(
  'killed servers lose and repeat nothing: %s',
  async (kind) => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-scheduled-'))
    const database = kind === 'SQLite' ? null : await freshDatabase(DOCUMENT_TEMPLATE)
    const args = [directory, String(COUNT), ...(database === null ? [] : [database.url])]
    const random = new Random(SEED)
    try {
      let kills = 0
      // The first server is killed, whatever it has done.
      while (!(await serve(args, kills < KILLS ? 10 + random.below(150) : null))) kills += 1
      expect(kills, `SVC_SEED=${SEED}`).toBeGreaterThan(0)
      const store =
        database === null
          ? await openSqliteDocuments(join(directory, 'documents.db'))
          : await openDocuments(database.url, {
              databaseId: readFileSync(join(directory, 'database-id'), 'utf8'),
            })
      const works = (await documentsOf(store, 'sch')).map(workOf)
      const marks = (await documentsOf(store, 'marks')).map(({ text }) => text)
      await store.close()
      const acted = readFileSync(join(directory, 'effects'), 'utf8').trimEnd().split('\n')
      expect(works).toHaveLength(2 * COUNT)
      const states = new Set(
        works.map((work) => `${work.kind} ${work.state} ${work.lastErrorCode}`),
      )
      expect([...states].toSorted().slice(-2)).toEqual([
        'action succeeded null',
        'mutation succeeded null',
      ])
      // Actions that a kill interrupted fail; no other state is left.
      expect([...states].filter((state) => !state.endsWith('succeeded null'))).toEqual(
        states.size === 3 ? ['action failed RESULT_UNCERTAIN'] : [],
      )
      expect(repeated(marks), `SVC_SEED=${SEED}`).toEqual([])
      expect(marks).toHaveLength(COUNT)
      expect(repeated(acted), `SVC_SEED=${SEED}`).toEqual([])
      const succeeded = works.filter((work) => work.kind === 'action' && work.state === 'succeeded')
      expect(acted.length).toBeGreaterThanOrEqual(succeeded.length)
    } finally {
      await database?.drop()
      rmSync(directory, { recursive: true, force: true })
    }
  },
  120_000,
)

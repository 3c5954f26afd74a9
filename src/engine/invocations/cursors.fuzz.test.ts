/**
 * Cursors come back from callers. One that was not issued for the list is rejected with
 * ARGUMENTS_INVALID: it never opens another list and never causes an internal error.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { inProcessPool } from '../../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { fuzz, mutatedBytes, mutatedText, type Random } from '../../../testing/fuzzing/fuzz.ts'
import { functionManifest } from '../../../testing/products.ts'
import { encodeKey } from '../../documents/keys.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { isFault } from '../../errors/fault.ts'
import type { RangeRequest } from '../../runner/protocol/operations.ts'
import { realSystem } from '../../system/system.ts'
import { createLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { Value, ValueObject } from '../../value/values.ts'
import { createEngine } from '../create-engine.ts'
import type { Engine } from '../engine.ts'
import type { Release } from '../releases/executable-release.ts'

const STRING = { type: 'string' } as const
const PAGE = { arguments: { list: STRING, cursor: STRING }, returns: { type: 'any' } } as const
const MANIFESTS = [
  functionManifest('page', PAGE),
  functionManifest('fill', { kind: 'mutation', returns: { type: 'any' } }),
]
const LISTS = ['a', 'b', 'all', 'newest', 'secrets'] as const
const system = realSystem()
const directory = mkdtempSync(join(tmpdir(), 'svc-cursors-'))

/** The range request of each list by name, without the cursor. */
const RANGES: Record<(typeof LISTS)[number], Pick<RangeRequest, 'table'> & Partial<RangeRequest>> =
  {
    a: { table: 'notes', index: 'byList', equal: ['a'] },
    b: { table: 'notes', index: 'byList', equal: ['b'] },
    all: { table: 'notes', index: 'byList' },
    newest: { table: 'notes', order: 'desc' },
    secrets: { table: 'secrets' },
  }

const release: Release = {
  releaseId: system.ids.make('rel'),
  source: '',
  sourceMap: null,
  functions: new Map(MANIFESTS.map((manifest) => [manifest.name, manifest])),
  tables: new Map([
    [
      'notes',
      {
        name: 'notes',
        fields: { list: STRING, text: STRING },
        indexes: [{ name: 'byList', fields: ['list'], unique: false }],
      },
    ],
    ['secrets', { name: 'secrets', fields: { list: STRING }, indexes: [] }],
  ]),
}

let engine: Engine
/** All issued cursors by list. */
const cursors = new Map<string, string[]>(LISTS.map((list) => [list, []]))

async function call(
  name: string,
  input: Record<string, Value>,
  target = release,
): Promise<ValueObject> {
  const request = {
    release: target,
    definition: release.functions.get(name)!,
    arguments: new Map(Object.entries(input)) as ValueObject,
    principal: null,
    context: { requestId: 'req_test', invocationId: 'ivc_test' },
  }
  const outcome =
    name === 'fill'
      ? await engine.mutation({
          ...request,
          operationId: system.ids.make('opn'),
          target: 'channel:test',
          caller: 'app/crd',
        })
      : await engine.query(request)
  return JSON.parse(outcome.resultText)
}

beforeAll(async () => {
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const pool = inProcessPool({
    page: (db, { list, cursor }) =>
      db.range({
        ...(RANGES[list as 'a'] ?? { table: 'notes', index: list, equal: ['a'] }),
        limit: 3,
        next: 'sealed',
        ...(cursor !== '' && { cursor }),
      }),
    fill: async (db) => {
      for (let i = 0; i < 10; i++) {
        for (const list of ['a', 'b']) await db.insert('notes', { list, text: 'x'.repeat(i) })
        await db.insert('secrets', { list: 'secrets' })
      }
      return null
    },
  })
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  engine = createEngine({
    store,
    pool,
    system,
    log: createLog({ system, sink: () => undefined, level: 'error' }),
    metrics: new Metrics(system),
    issueGuest: () => 'guest',
    storage: noStorage(),
    configuration: new TestConfiguration(),
    cursors: testCursors(),
  })
  await call('fill', {})
  for (const list of LISTS) {
    for (let cursor = '', done = false; !done; ) {
      const page = pageOf(await call('page', { list, cursor }))
      cursor = page.cursor
      cursors.get(list)!.push(cursor)
      done = page.done
    }
  }
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

interface Tagged {
  readonly type: string
  readonly value: never
}

function fieldsOf(tagged: unknown): Record<string, Tagged> {
  const { value } = tagged as { value: { key: string; value: Tagged }[] }
  return Object.fromEntries(value.map((entry) => [entry.key, entry.value]))
}

function pageOf(result: unknown) {
  const { cursor, done, documents } = fieldsOf(result)
  return {
    cursor: cursor!.value as string,
    done: done!.value as boolean,
    lists: (documents!.value as unknown[]).map(
      (document) => fieldsOf(document).list!.value as string,
    ),
  }
}

function changed(random: Random, cursor: string): string {
  switch (random.below(5)) {
    case 0:
      return cursor
    case 1:
      // An index key, which is the content of a sealed cursor.
      return encodeBase64Url(Buffer.from(encodeKey([random.pick(['a', 'b']), 'x']), 'latin1'))
    case 2:
      return mutatedText(random, cursor).toWellFormed()
    default:
      return mutatedBytes(
        random,
        Uint8Array.fromBase64(cursor, { alphabet: 'base64url' }),
      ).toBase64({
        alphabet: 'base64url',
        omitPadding: true,
      })
  }
}

fuzz('a cursor opens in its list alone, and no changed one opens', async (random) => {
  const list = random.pick(LISTS)
  const cursor = changed(random, random.pick(cursors.get(random.pick(LISTS))!))
  // The handler reads an empty text as no cursor.
  const isIssued = cursor === '' || cursors.get(list)!.includes(cursor)
  try {
    const { lists } = pageOf(await call('page', { list, cursor }))
    const allowed = list === 'newest' || list === 'all' ? ['a', 'b'] : [list]
    if (!lists.every((each) => allowed.includes(each))) expect.fail(`${list}: ${lists}`)
    if (!isIssued) expect.fail(`${list}: ${cursor} opened`)
  } catch (error) {
    if (isIssued || !isFault(error, 'ARGUMENTS_INVALID')) throw error
  }
})

test('a cursor continues its list in a Release that renames the index', async () => {
  const [first] = cursors.get('a')!
  const notes = release.tables.get('notes')!
  const nextRelease = (fields: string[]): Release => ({
    ...release,
    releaseId: system.ids.make('rel'),
    tables: new Map(release.tables).set('notes', {
      ...notes,
      indexes: [{ name: 'renamed', fields, unique: false }],
    }),
  })
  const input = { list: 'renamed', cursor: first! }
  const original = pageOf(await call('page', { list: 'a', cursor: first! }))
  expect(pageOf(await call('page', input, nextRelease(['list'])))).toEqual(original)
  const otherList = call('page', input, nextRelease(['list', 'text']))
  await expect(otherList).rejects.toMatchObject({ code: 'ARGUMENTS_INVALID' })
})

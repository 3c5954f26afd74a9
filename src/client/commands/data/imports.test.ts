import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type FakeServer,
  failure,
  newId,
  type Recorded,
  type Reply,
} from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { DocumentsImported } from '../../../wire/data.ts'

let server: FakeServer
let client: TestClient
/** Documents of the fake server by ID. */
let stored: Map<string, string>
let replies: Map<string, DocumentsImported>

const FIELDS = {
  body: { type: 'string' },
  likes: { type: 'optional', inner: { type: 'int64' } },
} as const

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  stored = new Map()
  replies = new Map()
  server.intercept = answer
})

/** Answers the catalog and imports as the server does. */
function answer(request: Recorded): Reply | null {
  if (request.path.startsWith(`${server.base}/schema/tables`)) {
    const tables = [{ name: 'notes', fields: FIELDS, indexes: [] }]
    return { status: 200, body: { version: 1, releaseId: newId.make('rel'), tables } }
  }
  return request.path === `${server.base}/data/import` ? imported(request) : null
}

function imported({ headers, body }: Recorded): Reply {
  const operationId = String(headers['idempotency-key'])
  const known = replies.get(operationId)
  if (known !== undefined) {
    const operation = { ...known.operation, replayed: true }
    return { status: 200, body: { ...known, operation } }
  }
  const { documents, changedAtMicros } = JSON.parse(body)
  let inserted = 0
  for (const [i, { documentId, value }] of documents.entries()) {
    const text = JSON.stringify(value)
    const before = stored.get(documentId)
    if (before !== undefined && before !== text) return conflictAt(i)
    if (before === undefined) inserted += 1
    stored.set(documentId, text)
  }
  const reply: DocumentsImported = {
    version: 1,
    inserted,
    unchanged: documents.length - inserted,
    operation: {
      version: 1,
      operationId: operationId as never,
      kind: 'document.import',
      outcome: 'applied',
      replayed: false,
      revision: '1',
      createdAtMicros: changedAtMicros,
    },
  }
  replies.set(operationId, reply)
  return { status: 200, body: reply as unknown as Json }
}

function conflictAt(index: number): Reply {
  const { status, body } = failure('PRODUCT_STATE_CONFLICT')
  const error = (body as { error: object }).error
  const violations = [{ path: `documents[${index}].documentId`, rule: 'an ID without a document' }]
  return { status, body: { ...(body as object), error: { ...error, violations } } as Json }
}

const path = () => join(client.home, 'notes.jsonl')
const journal = () => JSON.parse(readFileSync(`${path()}.journal`, 'utf8'))

function writeNotes(count: number): void {
  const lines = Array.from({ length: count }, (_, i) => `{"body":"note ${i}","likes":${i}}\n`)
  writeFileSync(path(), lines.join(''))
}

function importNotes(...more: string[]) {
  const where = ['--remote', '--root', 'root', '--target', 'channel:production']
  return client.run('data', 'import', 'notes', 'notes.jsonl', ...where, ...more)
}

/** Texts of the stored notes in the order of their IDs. */
function bodies(): string[] {
  const ids = [...stored.keys()].toSorted()
  return ids.map((id) => /"note \d+"/.exec(stored.get(id)!)![0])
}

describe('svc data import', () => {
  it('inserts every line once, in the order of the file, after ten interruptions', {
    tags: ['slow'],
  }, async () => {
    const count = 12_000
    writeNotes(count)
    for (let run = 1; run <= 10; run++) {
      let answered = 0
      // The effect of the interrupted request is lost in one run and stays in the next.
      server.intercept = (request) => {
        if (request.path !== `${server.base}/data/import` || ++answered <= 2) return answer(request)
        if (run % 2 === 0) imported(request)
        queueMicrotask(() => client.interrupt())
        return 'drop'
      }
      const { exit } = await importNotes()
      expect([run, exit]).toEqual([run, 130])
      expect(journal().finished).toBe(false)
    }
    server.intercept = answer
    const last = await importNotes('--json')
    expect(JSON.parse(last.out)).toMatchObject({ inserted: count, unchanged: 0 })
    expect(bodies()).toEqual(Array.from({ length: count }, (_, i) => `"note ${i}"`))
    expect(journal()).toMatchObject({ lines: count, finished: true })
    const again = await importNotes()
    expect([again.exit, again.err]).toEqual([1, expect.stringContaining('--journal')])
    expect(stored.size).toBe(count)
  })

  it('keeps the IDs of lines that have one, and leaves equal documents as they are', async () => {
    const id = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
    writeFileSync(path(), `{"_id":"${id}","_createdAt":"2026-01-01T00:00:00Z","body":"note 1"}\r\n`)
    expect((await importNotes()).out).toContain('Inserted 1 documents; 0 existed')
    expect([...stored.keys()]).toEqual([id])
    const other = await importNotes('--journal', 'other.journal')
    expect(other.out).toContain('Inserted 0 documents; 1 existed')
    stored.set(id, 'changed')
    replies.clear()
    const changed = await importNotes('--journal', 'third.journal')
    expect([changed.exit, changed.err]).toEqual([4, expect.stringContaining('line 1 documentId')])
  })

  it('asks for creation times in the order of the file, over batches and empty lines', async () => {
    writeNotes(700)
    const text = readFileSync(path(), 'utf8')
    writeFileSync(path(), `\ufeff${text.replace('\n', '\n\n\n')}`)
    expect((await importNotes()).out).toContain('Inserted 700 documents')
    const times = server.requestsTo('POST', `${server.base}/data/import`).map(({ body }) => {
      const { documents, changedAtMicros } = JSON.parse(body)
      return { at: BigInt(changedAtMicros), count: BigInt(documents.length) }
    })
    expect(times.map(({ count }) => count)).toEqual([500n, 200n])
    const [first, second] = times
    // The server adds a microsecond for each document.
    expect(second!.at).toBeGreaterThanOrEqual(first!.at + first!.count)
    expect(first!.at).toBe(BigInt(journal().changedAtMicros))
    expect(bodies()).toHaveLength(700)
  })

  it('names a line that is too long, and a document that the server finds too large', async () => {
    writeFileSync(path(), `{"body":"note 0"}\n{"body":"${'x'.repeat(13 * 1024 * 1024)}"}\n`)
    const long = await importNotes('--dry-run')
    expect([long.exit, long.err]).toEqual([8, expect.stringContaining('line 2: at most 12582912')])
    writeNotes(3)
    const { status, body } = failure('PLATFORM_BODY_TOO_LARGE')
    const violations = [{ path: 'documents[2].value', rule: 'at most 1048576 bytes' }]
    const { error } = body as { error: object }
    server.intercept = (request) =>
      request.path.endsWith('/data/import')
        ? { status, body: { ...(body as object), error: { ...error, violations } } as Json }
        : answer(request)
    const large = await importNotes()
    expect([large.exit, large.err]).toEqual([
      8,
      expect.stringContaining('line 3 value: at most 1048576 bytes'),
    ])
  })

  it('names the line that does not fit, and continues there once it is corrected', async () => {
    writeNotes(1_000)
    const before = readFileSync(path(), 'utf8')
    appendFileSync(path(), '{"body":7}\n')
    const failed = await importNotes()
    expect([failed.exit, failed.err]).toEqual([8, expect.stringContaining('line 1001 $.body')])
    expect(failed.err).toContain('The lines up to 1000 are imported')
    expect(failed.err).not.toContain('7}')
    writeFileSync(path(), `${before}{"body":"note 1000"}\n`)
    expect((await importNotes()).exit).toBe(0)
    expect(stored.size).toBe(1_001)
  })

  it('rejects a journal of another file, table or notation', async () => {
    writeNotes(600)
    server.intercept = (request) =>
      request.path.endsWith('/data/import') && replies.size > 0
        ? failure('PRODUCT_INVALID')
        : answer(request)
    expect((await importNotes()).exit).toBe(8)
    server.intercept = answer
    expect(journal().lines).toBe(500)
    const tagged = await importNotes('--tagged')
    expect(tagged.err).toContain('another tagged')
    writeFileSync(path(), readFileSync(path(), 'utf8').replace('note 3', 'note X'))
    const changed = await importNotes()
    expect([changed.exit, changed.err]).toEqual([1, expect.stringContaining('another file')])
    expect(stored.size).toBe(500)
  })

  it('checks every line with --dry-run and sends none', async () => {
    writeNotes(3)
    expect((await importNotes('--dry-run')).out).toContain('All 3 documents fit')
    appendFileSync(path(), 'no json\n{"body":"x","other":1}\n{"_id":"users_1","body":"x"}\n')
    const failed = await importNotes('--dry-run', '--json')
    const { error } = JSON.parse(failed.out)
    expect(error.violations.map((each: { path: string }) => each.path)).toEqual([
      'line 4 $ at character 0',
      'line 5 $.other',
      'line 6 $._id',
    ])
    expect([failed.exit, stored.size]).toEqual([8, 0])
    expect(server.requestsTo('POST', `${server.base}/data/import`)).toEqual([])
  })
})

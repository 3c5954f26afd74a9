import { beforeEach, expect, it } from 'vitest'
import { type FakeServer, newId, type Recorded } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient
/** Cursors that the next requests are answered with, and null for the last one. */
let cursors: (string | null)[]

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  cursors = ['one', 'two', null]
  server.intercept = (request) => {
    if (request.path !== `${server.base}/data/compact`) return null
    const operation = {
      version: 1,
      operationId: String(request.headers['idempotency-key']),
      kind: 'document.compact',
      outcome: 'applied',
      replayed: false,
      revision: '1',
      createdAtMicros: bodyOf(request).changedAtMicros,
    }
    const counts = { read: 500, changed: 2, removedFields: 3, next: cursors.shift()! }
    return { status: 200, body: { version: 1, ...counts, operation } }
  }
})

const bodyOf = ({ body }: Recorded) => JSON.parse(body)

function compact(...more: string[]) {
  const where = ['--remote', '--root', 'root', '--target', 'channel:production']
  return client.run('data', 'compact', '--table', 'notes', ...where, ...more)
}

it('svc data compact continues until every document was read, and adds up', async () => {
  const done = await compact()
  expect(done).toMatchObject({ exit: 0 })
  expect(done.out).toContain('9 fields of 6 documents are removed; 1500 documents were read.')
  const asked = server.requestsTo('POST', `${server.base}/data/compact`)
  expect(asked.map((request) => bodyOf(request).after ?? null)).toEqual([null, 'one', 'two'])
  expect(new Set(asked.map(({ headers }) => headers['idempotency-key'])).size).toBe(3)
  expect(asked.map((request) => bodyOf(request).dryRun)).toEqual([false, false, false])
})

it('svc data compact --dry-run says what would be removed', async () => {
  const done = await compact('--dry-run', '--json')
  const counts = { read: 1500, changed: 6, removedFields: 9 }
  expect(JSON.parse(done.out)).toEqual({ version: 1, dryRun: true, table: 'notes', ...counts })
  const asked = server.requestsTo('POST', `${server.base}/data/compact`)
  expect(asked.map((request) => bodyOf(request).dryRun)).toEqual([true, true, true])
})

it('svc data get says how many fields the target does not declare', async () => {
  const id = newId.make('rel').replace('rel', 'notes')
  const value = { type: 'object', value: [] }
  const document = { id, table: 'notes', revision: '7', createdAtMicros: '1', value }
  server.intercept = (request) =>
    request.path.startsWith(`${server.base}/data/documents/notes/`)
      ? { status: 200, body: { version: 1, document: { ...document, hiddenFields: 2 } } }
      : null
  const where = ['--remote', '--root', 'root', '--target', 'channel:production']
  const { err } = await client.run('data', 'get', 'notes', id, ...where)
  expect(err).toContain('Revision 7; 2 fields of other Releases, which the target does not')
})

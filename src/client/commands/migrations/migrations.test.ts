import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const REMOTE = ['--remote', '--root', 'root']
const RELEASE = 'rel_00000000000000000000000001'
const DOCUMENT = 'tasks_00000000000000000000000001'
const ADD = {
  name: 'addPriority',
  releaseId: RELEASE,
  table: 'tasks',
  state: 'running',
  processed: '12500',
  changed: '3200',
  failed: '0',
  lastErrorCode: null as string | null,
  lastDocumentId: null as string | null,
  startedAtMicros: '1800000000000000',
  finishedAtMicros: null as string | null,
}
const operation = {
  version: 1,
  operationId: 'opn_01MCC5RM00440WAKYHT0DB49BM',
  kind: 'migration.run',
  outcome: 'applied',
  replayed: false,
  revision: '5',
  createdAtMicros: '1800000000000000',
}
const string = (value: string) => ({ type: 'string', value })
const object = (fields: Record<string, { type: string; value: string }>) => ({
  type: 'object',
  value: Object.entries(fields).map(([key, value]) => ({ key, value })),
})

let server: FakeServer
let client: TestClient
/** The items that the list returns, one after the other; the last one stays. */
let states: (typeof ADD)[]
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  states = [ADD]
  server.intercept = ({ method, path, body }) => {
    if (!path.includes('/migrations')) return null
    if (method === 'GET') {
      const item = states.length > 1 ? states.shift()! : states[0]!
      return { status: 200, body: { version: 1, releaseId: RELEASE, migrations: [item] } }
    }
    const isDry = JSON.parse(body!).action === 'dry-run'
    const before = object({ title: string('a') })
    const documents = [
      { documentId: DOCUMENT, before, after: object({ title: string('b') }), error: null },
      { documentId: DOCUMENT, before, after: before, error: null },
      {
        documentId: DOCUMENT,
        before,
        after: null,
        error: { code: 'FUNCTION_FAILED', message: 'x' },
      },
    ]
    const result = isDry ? { operation: null, documents } : { operation, documents: null }
    return { status: 200, body: { version: 1, ...ADD, ...result } }
  }
})

const blocked = {
  ...ADD,
  state: 'blocked',
  failed: '1',
  lastErrorCode: 'FUNCTION_FAILED',
  lastDocumentId: DOCUMENT,
}

describe('svc migrations', () => {
  it('lists the migrations of the newest Release or of the one named', {
    tags: ['slow'],
  }, async () => {
    const { exit, out } = await client.run('migrations', 'list', ...REMOTE)
    expect(exit).toBe(0)
    const rows = out.split('\n').map((line) => line.trimEnd().split(/ {2,}/))
    expect(rows.slice(0, 3)).toEqual([
      [`${RELEASE} has 1 migration.`],
      ['NAME', 'TABLE', 'STATE', 'PROCESSED', 'CHANGED', 'ERROR', 'STARTED', 'FINISHED'],
      ['addPriority', 'tasks', 'running', '12500', '3200', '-', '2027-01-15T08:00:00Z', '-'],
    ])
    await client.run('migrations', 'list', ...REMOTE, '--release', RELEASE)
    expect(server.requests.at(-1)!.path).toBe(`${server.base}/migrations?release=${RELEASE}`)
  })

  it('runs a migration of the newest Release and says how to follow it', async () => {
    const { exit, out } = await client.run('migrations', 'run', 'addPriority', ...REMOTE)
    expect([exit, out]).toEqual([
      0,
      'addPriority is running. Follow it with `svc migrations status addPriority --follow`.\n',
    ])
    const { method, path, body } = server.requests.at(-1)!
    expect([method, path]).toEqual(['POST', `${server.base}/migrations/addPriority`])
    expect(JSON.parse(body!)).toMatchObject({ releaseId: RELEASE, action: 'run' })
  })

  it('shows the fields that a dry run would change, and where it would stop', async () => {
    const ran = await client.run('migrations', 'run', 'addPriority', '--dry-run', ...REMOTE)
    expect(ran.out).toBe(
      [
        'addPriority would do this with the first 3 documents; nothing is stored.',
        DOCUMENT,
        '  title: "a" -> "b"',
        DOCUMENT,
        '  unchanged',
        DOCUMENT,
        '  FUNCTION_FAILED: x',
        'It would stop at the last one.\n',
      ].join('\n'),
    )
  })

  it('names the document that stopped a migration, and what to do', async () => {
    states = [blocked]
    const { exit, out } = await client.run('migrations', 'status', 'addPriority', ...REMOTE)
    expect(exit).toBe(0)
    expect(out).toContain('addPriority is blocked: 12,500 documents, 3,200 changed.')
    expect(out).toContain(`FUNCTION_FAILED at ${DOCUMENT}`)
    expect(out).toContain('svc migrations resume addPriority')
  })

  it('follows a migration until it is complete, with a line for each change', {
    tags: ['slow'],
  }, async () => {
    const complete = { ...ADD, state: 'complete', finishedAtMicros: '1800000001000000' }
    states = [ADD, { ...ADD, processed: '13000' }, complete]
    const follow = ['migrations', 'status', 'addPriority', '--follow', ...REMOTE]
    const { exit, out } = await client.run(...follow)
    expect([exit, out]).toEqual([
      0,
      [
        'addPriority is running: 12,500 documents, 3,200 changed.',
        'addPriority is running: 13,000 documents, 3,200 changed.',
        'addPriority is complete: 12,500 documents, 3,200 changed.\n',
      ].join('\n'),
    ])
    states = [ADD, blocked]
    const ended = await client.run(...follow, '--json')
    expect(ended.exit).toBe(4)
    const lines = ended.out.split('\n').filter((line) => line.startsWith('{"'))
    expect(lines.map((line) => JSON.parse(line).state)).toEqual(['running', 'blocked'])
  })

  it('passes on what the server rejects, and a wrong name before it asks', async () => {
    const { intercept } = server
    server.intercept = (request) =>
      request.method === 'POST' ? failure('PRODUCT_STATE_CONFLICT', 409) : intercept!(request)
    const ran = await client.run('migrations', 'resume', 'addPriority', ...REMOTE)
    expect(ran.exit).toBe(4)
    server.requests.length = 0
    const wrong = await client.run('migrations', 'pause', 'a-b', ...REMOTE)
    expect([wrong.exit, server.requests]).toEqual([2, []])
    const other = await client.run('migrations', 'status', 'other', ...REMOTE)
    expect([other.exit, other.err]).toEqual([2, expect.stringContaining('it has: addPriority')])
  })
})

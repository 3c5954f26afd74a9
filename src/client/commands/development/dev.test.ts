import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestClient } from '../../../../testing/client/test-client.ts'
import { makeRoot } from '../../../../testing/product-roots.ts'
import type { DevelopmentEvent } from '../../development/events.ts'
import type { DevelopmentRequest } from '../../development/workspace-tools.ts'

const COPIED: DevelopmentEvent = {
  event: 'copied',
  from: '/backups',
  environmentId: 'env_00000000000000000000000001',
  historyId: 'hst_00000000000000000000000001',
  sequence: 7,
  atMicros: '1800000000000000',
  tables: [
    { table: 'orders', documents: 0, leftOut: 3, rule: null, fieldsLeftOut: [] },
    {
      table: 'people',
      documents: 12,
      leftOut: 1,
      rule: 'expected a string (people.name)',
      fieldsLeftOut: ['home.code', 'ssn'],
    },
  ],
  files: 4,
  isRedacted: false,
}

let client: TestClient
let root: string
let requests: DevelopmentRequest[]
beforeEach(() => {
  client = new TestClient()
  root = makeRoot()
  requests = []
  client.tools = {
    async develop(request) {
      requests.push(request)
      if (request.copy !== null) request.report(COPIED)
    },
  }
})
afterEach(() => {
  client[Symbol.dispose]()
  rmSync(root, { recursive: true })
})

const dev = (...options: string[]) => client.run('dev', '--root', root, ...options)

test('a backup is named by its path or bucket, with the files that open it', async () => {
  writeFileSync(join(client.home, 'redact.json'), '{"tables":{}}')
  client.variables.SERVICE_BACKUP_S3_ENDPOINT = 'https://s3.example.com'
  const keys = ['--identity', 'one.key', '--identity', '/two.key']
  expect(await dev('--from', 'backup.tar', ...keys, '--redact', 'redact.json')).toMatchObject({
    exit: 0,
  })
  const chosen = ['--environment', 'env_1', '--history', 'hst_1']
  await dev('--from', 's3://bucket/prefix', ...keys, ...chosen)
  await dev()
  const identities = [join(client.home, 'one.key'), '/two.key']
  expect(requests.map(({ copy }) => copy)).toEqual([
    {
      from: join(client.home, 'backup.tar'),
      identities,
      environmentId: null,
      historyId: null,
      redaction: new Uint8Array(Buffer.from('{"tables":{}}')),
    },
    {
      from: 's3://bucket/prefix',
      identities,
      environmentId: 'env_1',
      historyId: 'hst_1',
      redaction: null,
    },
    null,
  ])
  const variables = { SERVICE_BACKUP_S3_ENDPOINT: 'https://s3.example.com' }
  expect(requests[2]!.variables).toEqual(variables)
})

test('the report of a copy says what was left out and why', async () => {
  const { out } = await dev('--from', 'backup.tar', '--identity', 'one.key')
  expect(out.split('\n').map((line) => line.replace(/^\S+ +copied/, 'copied').trim())).toEqual([
    expect.stringMatching(/^copied {2}\/backups, sequence 7 of 2027-.*, not redacted: real data/),
    'orders: 0 documents, 3 left out: the schema has no such table',
    'people: 12 documents, 1 left out: expected a string (people.name)',
    'fields left out, which the schema lacks: home.code, ssn',
    'files: 4, whose bytes are read from the backup when they are needed',
    '',
  ])
})

test.each<[string, string[]]>([
  ['--from needs --identity', ['--from', 'backup.tar']],
  ['need --from', ['--redact', 'redact.json']],
  ['need --from', ['--identity', 'one.key']],
  ['--prepare copies no backup', ['--from', 'b', '--identity', 'k', '--prepare']],
  ['--attach copies no backup', ['--attach', 'https://dev.example.com', '--from', 'b']],
  ['There is no', ['--from', 'b', '--identity', 'k', '--redact', 'missing.json']],
])('options that do not belong together are rejected: %s', async (message, options) => {
  const { exit, err, out } = await dev(...options)
  expect([exit, err + out]).toEqual([expect.any(Number), expect.stringContaining(message)])
  expect(exit).not.toBe(0)
  expect(requests).toEqual([])
})

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { inProcessPool } from '../../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import {
  AUTHORIZED,
  functionManifest,
  makePackage,
  OTHER_PROJECT_ID,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
  type WorkspaceInput,
} from '../../../testing/products.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { createEngine } from '../../engine/create-engine.ts'
import { Fault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import type { ValueObject } from '../../value/values.ts'
import { promote } from '../channels/promote.ts'
import { readStatus } from '../environments/status.ts'
import { validate } from '../releases/validate.ts'
import { checkPackage } from './check.ts'
import { publish } from './publish.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const MESSAGES: TableManifest = {
  name: 'messages',
  fields: { body: { type: 'string' } },
  indexes: [{ name: 'byBody', fields: ['body'], unique: true }],
}
const CHAT = { functions: [functionManifest('messages.list')], tables: [MESSAGES] }

/** The code declares the same as the manifest unless `described` differs. */
function check(
  input: WorkspaceInput,
  { against = null, described = input }: { against?: string | null; described?: object } = {},
) {
  const { functions = [], tables = [] } = described as WorkspaceInput
  harness.engine.describe = async () => ({ functions, tables }) as unknown as Json
  return checkPackage(harness.product, { frame: [makePackage(input)], against })
}

async function promoted(input: WorkspaceInput): Promise<void> {
  const { releaseId } = await publishRelease(harness, input)
  const binding = { channel: 'production', releaseId, expectedReleaseId: null }
  await promote(harness.product, harness.actor, { ...binding, requestId: REQUEST_ID })
  await harness.product.serving.whenIdle()
}

const failedOf = ({ checks }: { checks: readonly { name: string; outcome: string }[] }) =>
  checks.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name)

test('a package that passes has the checks of its validation', async () => {
  await promoted({ ...CHAT, source: 'first' })
  const next = { ...CHAT, source: 'second' }
  const checked = await check(next, { against: 'production' })
  expect(checked).toMatchObject({ workspace: 'default', compatible: true })
  const published = await publishRelease(harness, { ...next, validate: false })
  expect(checked.packageDigest).toBe(published.packageDigest)
  const { releaseId } = published
  const request = { releaseId, against: 'production', requestId: REQUEST_ID }
  const validated = await validate(harness.product, harness.actor, request)
  expect(checked.checks).toEqual(validated.checks)
})

test('a check stores nothing: no Release, no audit record, no artifact, no index', async () => {
  await promoted(CHAT)
  const directory = mkdtempSync(join(tmpdir(), 'svc-check-'))
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const system = realSystem()
  const pool = Object.assign(inProcessPool({}), {
    close: async () => undefined,
    retainOnly: () => undefined,
  })
  const engine = createEngine({
    store,
    pool,
    system,
    log: harness.log.log,
    metrics: new Metrics(system),
    issueGuest: () => 'nobody',
    storage: noStorage(),
    cursors: testCursors(),
    configuration: new TestConfiguration(),
  })
  const { product } = harness
  harness.engine.prepare = (release) => engine.prepare(release)
  harness.engine.retainOnly = (live, onDrained) => engine.retainOnly(live, onDrained)
  const filesOf = () =>
    readdirSync(harness.directory, { recursive: true }).filter((name) => !/\.db/.test(`${name}`))
  const stateOf = () => ({
    status: readStatus(product),
    files: filesOf().toSorted(),
    indexes: store.listIndexes(),
    audited: harness.audited.length,
  })
  try {
    const { releaseId } = readStatus(product).channels[0]!
    await engine.prepare(await product.releases.load(releaseId))
    await product.audit.whenIdle()
    const before = stateOf()
    const index = { name: 'byAge', fields: ['age'], unique: false }
    const fields = { ...MESSAGES.fields, age: { type: 'optional', inner: { type: 'float64' } } }
    const tables = [{ ...MESSAGES, fields, indexes: [index, ...MESSAGES.indexes] }]
    const wider = { ...CHAT, tables } as WorkspaceInput
    let built = 0
    const { prepare } = harness.engine
    harness.engine.prepare = async (release) => {
      const prepared = await prepare(release)
      built = store.listIndexes().length
      return prepared
    }
    expect(await check(wider)).toMatchObject({ compatible: true })
    await product.engineCollection.whenIdle()
    await product.audit.whenIdle()
    expect(built).toBe(before.indexes.length + 1)
    expect(stateOf()).toEqual(before)
  } finally {
    await engine.close()
    rmSync(directory, { recursive: true, force: true })
  }
})

test.each<[string, string[]]>([
  ['code that lacks a declared Function', ['code:functions']],
  ['a table that was removed', ['against:tables']],
  ['a field that earlier documents lack', ['against:documents']],
  ['stored documents that share a unique key', ['unique:messages.byBody']],
])('a package with %s is not compatible', { tags: ['slow'] }, async (defect, failed) => {
  const plain = { ...CHAT, tables: [{ ...MESSAGES, indexes: [] }] }
  await promoted(plain)
  const stored = new Map([['body', 'the same']]) as unknown as ValueObject
  harness.engine.documents.set('messages', [stored, stored])
  const fields = { ...MESSAGES.fields, title: { type: 'string' } } as TableManifest['fields']
  const narrower = { ...plain, tables: [{ ...MESSAGES, fields, indexes: [] }] }
  const against = 'production'
  const cases: Record<string, () => ReturnType<typeof check>> = {
    'code:functions': () => check(plain, { against, described: { ...plain, functions: [] } }),
    'against:tables': () => check({ ...CHAT, tables: [] }, { against }),
    'against:documents': () => check(narrower, { against }),
    'unique:messages.byBody': () => check(CHAT, { against }),
  }
  const { checkedTables } = harness.engine
  const before = checkedTables.length
  const checked = await cases[failed[0]!]!()
  expect([defect, checked.compatible, failedOf(checked)]).toEqual([defect, false, failed])
  // Documents are only read for a package whose code and schema passed.
  expect(checkedTables.length - before).toBe(failed[0]!.startsWith('unique') ? 1 : 0)
  // A failed check rejects no Release: the package may still be published.
  const { workspaces } = readStatus(harness.product)
  expect(workspaces).toHaveLength(1)
})

test('a check says for each change what it allows beside what is served', async () => {
  await promoted(CHAT)
  const { releaseId } = readStatus(harness.product).channels[0]!
  const fields = {
    body: { type: 'string', maximumLength: 9 },
    nick: { type: 'optional', inner: { type: 'string' } },
  } as const
  const topics: TableManifest = { name: 'topics', fields: {}, indexes: [] }
  const next = { ...CHAT, tables: [{ ...MESSAGES, fields, indexes: [] }, topics] }
  const { served } = await check(next)
  const shorter = 'messages.body: the maximum length 9 is added; for example {"body":"aaaaaaaaaa"}'
  expect(served).toEqual([
    {
      releaseId,
      uses: ['bound to the Channel production'],
      omitted: 0,
      changes: [
        {
          table: 'messages',
          path: 'body',
          change: 'string becomes string (at most 9)',
          promote: 'documents',
          rollback: 'allowed',
          refusals: [`${shorter}; change the stored documents with a migration first`],
        },
        {
          table: 'messages',
          path: 'nick',
          change: 'the field is added: optional string',
          promote: 'documents',
          rollback: 'allowed',
          refusals: [],
        },
        {
          table: 'messages',
          path: 'byBody',
          change: 'the unique index is removed',
          promote: 'allowed',
          rollback: 'documents',
          refusals: [
            'messages.byBody: the unique index is removed; for example {"body":""}; Releases ' +
              'that differ by this cannot serve side by side',
          ],
        },
        {
          table: 'topics',
          path: '',
          change: 'the table is added',
          promote: 'allowed',
          rollback: 'allowed',
          refusals: [],
        },
      ],
    },
  ])
  const broken = await check(next, { described: { ...next, functions: [] } })
  expect(broken.served).toEqual([])
})

test('a package that cannot be checked is rejected', async () => {
  expect(await codeOf(check({ projectId: OTHER_PROJECT_ID }))).toBe('PRODUCT_INVALID')
  expect(await codeOf(check(CHAT, { against: 'none' }))).toBe('PRODUCT_NOT_FOUND')
  const busy = check(CHAT)
  harness.engine.describe = async () => {
    throw new Fault('BUSY')
  }
  expect(await codeOf(busy)).toBe('PRODUCT_UNAVAILABLE')
  const short = { frame: [makePackage().subarray(1)], against: null }
  expect(await codeOf(checkPackage(harness.product, short))).toBe('PRODUCT_INVALID')
})

const PROVENANCE = {
  message: 'Fix the inbox',
  commit: 'a'.repeat(40),
  branch: 'main',
  dirty: false,
  run: { provider: 'github', id: '7', url: null },
}

test('a revision keeps the provenance that its first publication declared', async () => {
  const publication = {
    frame: [makePackage(CHAT)],
    expectedHead: 'empty' as const,
    requestId: REQUEST_ID,
    authorized: AUTHORIZED,
  }
  const { product, actor } = harness
  await publish(product, actor, { ...publication, provenance: PROVENANCE })
  const other = { ...PROVENANCE, message: 'Another' }
  const repeated = await publish(product, actor, { ...publication, provenance: other })
  expect(repeated.replayed).toBe(true)
  await publishRelease(harness, { source: 'without one' })
  const declared = readStatus(product).releases.map(({ provenance }) => provenance)
  expect(declared).toEqual([null, PROVENANCE])
})

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (failure) => failure,
  )
  return error instanceof Fault ? error.code : String(error)
}

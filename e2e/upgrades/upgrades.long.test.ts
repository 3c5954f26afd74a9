/**
 * The ways of upgrades.test.ts with documents in PostgreSQL, with more documents, and from any
 * earlier version: SVC_TEST_EARLIER names a folder with its svc and svc-server.
 */
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXPANSION, nextPrograms, ONE_WAY } from '../../testing/servers/next-release.ts'
import { previousCommit, previousPrograms } from '../../testing/servers/previous-release.ts'
import { SERVER } from '../harness.ts'
import { backAndForth, oneWayAndBack, oneWayWithBackup } from './routes.ts'
import { backedUpStory, story } from './story.ts'

const LONG_MILLIS = 600_000
const STORES = ['sqlite', 'postgres'] as const
const commit = previousCommit()
const isThere = commit === '' ? ' (the history lacks the previous release)' : ''
const EARLIER = process.env.SVC_TEST_EARLIER ?? ''

test.each(STORES)(
  'this version starts again after a later one that only adds, on %s',
  { timeout: LONG_MILLIS },
  async (store) => {
    const next = nextPrograms(EXPANSION)
    onTestFinished(() => next.dispose())
    const found = await story({ server: SERVER, store, documents: 300 })
    await backAndForth(found, SERVER, next.server)
  },
)

test.each(STORES)(
  'this version restores what a later one backed up before a one-way upgrade, on %s',
  { timeout: LONG_MILLIS },
  async (store) => {
    const next = nextPrograms(ONE_WAY)
    onTestFinished(() => next.dispose())
    const found = await backedUpStory({ server: SERVER, store, documents: 300 })
    await oneWayWithBackup(found.story, [SERVER, next.server], found.places)
  },
)

test('a later version that renames what this one reads is noticed', async () => {
  const next = nextPrograms({
    ...EXPANSION,
    'migrations/control': 'alter table buckets rename column quota_bytes to quota;',
  })
  onTestFinished(() => next.dispose())
  const found = await story({ server: SERVER, store: 'sqlite', documents: 1 })
  await found.observe()
  await found.app.server.stop()
  expect(await found.mode(next.server, ['migrate'])).toMatchObject({ status: 0 })
  await expect(found.serve(SERVER).then(() => found.observe())).rejects.toThrow('quota_bytes')
})

describe.skipIf(commit === '')(`the previous release${isThere}`, () => {
  test.each(STORES)(
    'its root is upgraded through kills, copied back and upgraded again, on %s',
    { timeout: LONG_MILLIS },
    async (store) => {
      const { server } = previousPrograms(commit)
      const found = await story({ server, store, documents: 300 })
      await oneWayAndBack(found, server, SERVER)
    },
  )
})

describe.skipIf(EARLIER === '')('the version that SVC_TEST_EARLIER names', () => {
  test.each(STORES)(
    'its root is upgraded through kills and copied back, on %s',
    { timeout: LONG_MILLIS },
    async (store) => {
      const [server, client] = ['svc-server', 'svc'].map((name) => join(EARLIER, name))
      const options = { server: server!, client: client!, isEarliest: true, documents: 300 }
      await oneWayAndBack(await story({ ...options, store }), server!, SERVER)
    },
  )
})

import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../build/testing/products.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { FieldsJson } from '../../value/validators.ts'
import { promote, rollback } from '../channels/promote.ts'
import { setServingPolicy } from '../serving/serving-policy.ts'

let it: TestProduct
/** Tables whose documents were looked at, for each time. */
let looked: string[][]
let finds: 'passed' | 'failed'

beforeEach(async () => {
  it = await openTestProduct()
  looked = []
  finds = 'passed'
})
afterEach(() => it.close())

function tableOf(name: string, fields: FieldsJson, unique?: string): TableManifest {
  const index = { name: `by_${unique}`, fields: [unique!], unique: true }
  return { name, fields, indexes: unique === undefined ? [] : [index] }
}

/** A validated Release; its documents are looked at from here on. */
async function releaseOf(...tables: TableManifest[]): Promise<ReleaseId> {
  const { prepare } = it.engine
  const { releaseId } = await publishRelease(it, { source: String(Math.random()), tables })
  it.engine.prepare = async (release, only) => {
    if (only === undefined) return prepare(release)
    looked.push([...only])
    return [...only].map((name) => ({ name: `documents:${name}`, outcome: finds, detail: name }))
  }
  return releaseId
}

function bind(channel: string, releaseId: ReleaseId) {
  const expectedReleaseId = null
  return promote(it.product, it.actor, {
    ...{ channel, releaseId, expectedReleaseId },
    requestId: REQUEST_ID,
  })
}

const NARROW = tableOf('notes', { text: { type: 'string', maximumLength: 4 } })
const WIDE = tableOf('notes', { text: { type: 'string' } })
const UNIQUE = tableOf('notes', { text: { type: 'string' } }, 'text')
const OTHER = tableOf('other', { text: { type: 'string' } })

test('a Release that takes what every served one writes is bound without a look', async () => {
  await bind('production', await releaseOf(NARROW, OTHER))
  await bind('production', await releaseOf(WIDE, OTHER))
  expect(looked).toEqual([])
})

test.each([
  ['validators that refuse some', NARROW],
  ['a unique index', UNIQUE],
])(
  'where the served one may have stored what %s, only that table is looked at',
  async (_, next) => {
    const served = await releaseOf(WIDE, OTHER)
    await bind('production', served)
    const release = await releaseOf(next, OTHER)
    finds = 'failed'
    await expect(bind('production', release)).rejects.toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [{ path: 'checks.documents:notes', rule: 'notes' }],
    })
    expect(looked).toEqual([['notes']])
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: served })
    finds = 'passed'
    expect(await bind('production', release)).toMatchObject({ releaseId: release })
  },
)

test('what other Channels serve counts too, also for a serving policy', async () => {
  await bind('staging', await releaseOf(WIDE))
  const narrow = await releaseOf(NARROW)
  finds = 'failed'
  await expect(bind('production', narrow)).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
  const policy = setServingPolicy(it.product, it.actor, {
    operationId: it.system.ids.make('opn'),
    expectedRevision: 0n,
    mode: 'atomic',
    releases: [{ releaseId: narrow, weight: 10_000 }],
    changedAtMicros: 0n,
    requestId: REQUEST_ID,
  })
  await expect(policy).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
  expect(looked).toEqual([['notes'], ['notes']])
})

test('a rollback leaves tables behind, and is refused for documents alone', async () => {
  const earlier = await releaseOf(NARROW)
  const later = await releaseOf(WIDE, OTHER)
  await bind('production', earlier)
  await bind('production', later)
  const back = () =>
    rollback(it.product, it.actor, {
      channel: 'production',
      targetReleaseId: earlier,
      expectedReleaseId: later,
      requestId: REQUEST_ID,
    })
  finds = 'failed'
  await expect(back()).rejects.toMatchObject({ code: 'PRODUCT_INCOMPATIBLE' })
  finds = 'passed'
  expect(await back()).toMatchObject({ releaseId: earlier })
  // A table that the served Release does not have may have documents of those before it.
  expect(looked).toEqual([['other'], ['notes'], ['notes']])
})

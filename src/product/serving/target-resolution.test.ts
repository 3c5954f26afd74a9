import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  functionManifest,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { promote } from '../channels/promote.ts'
import { listFunctions } from '../releases/catalogs.ts'
import { locateTarget } from '../targets.ts'
import { resolveTarget } from './target-resolution.ts'

let harness: TestProduct
let first: ReleaseId
let second: ReleaseId
let published: ReleaseId
let retired: ReleaseId
let rejected: ReleaseId

beforeEach(async () => {
  harness = await openTestProduct()
  first = (await publishRelease(harness, { source: 'first' })).releaseId
  second = (await publishRelease(harness, { source: 'second' })).releaseId
  published = (await publishRelease(harness, { workspace: 'draft', validate: false })).releaseId
  retired = (await publishRelease(harness, { workspace: 'old' })).releaseId
  rejected = (await publishRelease(harness, { workspace: 'bad' })).releaseId
  harness.root.control.transaction((tx) => {
    tx.run("update releases set state = 'retired' where release_id = ?", retired)
    tx.run("update releases set state = 'rejected' where release_id = ?", rejected)
  })
  await promote(harness.product, harness.actor, {
    channel: 'production',
    releaseId: first,
    expectedReleaseId: null,
    requestId: REQUEST_ID,
  })
  await harness.product.serving.whenIdle()
})
afterEach(() => harness.close())

async function outcome(target: string, scopes: ApplicationScope[] = ['query', 'workspace']) {
  try {
    return (await resolveTarget(harness.product, { scopes }, target, { affinity: () => 'caller' }))
      .source
  } catch (error) {
    return (error as { code: string }).code
  }
}

function operatorOutcome(target: string): string {
  try {
    return locateTarget(harness.product, target)
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('an application call', () => {
  test.each<[string, () => string, string]>([
    ['a bound Channel', () => 'channel:production', 'first'],
    ['an unbound Channel', () => 'channel:beta', 'TARGET_NOT_FOUND'],
    ['a validated Release', () => `release:${second}`, 'second'],
    ['a Release that is only published', () => `release:${published}`, 'TARGET_NOT_FOUND'],
    ['a rejected Release', () => `release:${rejected}`, 'TARGET_NOT_FOUND'],
    ['a retired Release', () => `release:${retired}`, 'RELEASE_RETIRED'],
    ['an unknown Release', () => `release:${harness.system.ids.make('rel')}`, 'TARGET_NOT_FOUND'],
    ['a Workspace', () => 'workspace:default', 'second'],
    ['a Workspace whose HEAD is not validated', () => 'workspace:draft', 'TARGET_NOT_FOUND'],
    ['an unknown Workspace', () => 'workspace:none', 'TARGET_NOT_FOUND'],
    ['the Environment without a policy', () => 'environment:default', 'TARGET_NOT_FOUND'],
    ['another Environment target', () => 'environment:other', 'REQUEST_INVALID'],
    ['an empty text', () => '', 'REQUEST_INVALID'],
    ['a name without a kind', () => 'production', 'REQUEST_INVALID'],
    ['a kind without a name', () => 'channel:', 'REQUEST_INVALID'],
    ['an upper-case name', () => 'channel:Production', 'REQUEST_INVALID'],
    ['an unknown kind', () => 'branch:main', 'REQUEST_INVALID'],
    ['a kind named as an inherited property', () => 'constructor:x', 'REQUEST_INVALID'],
    ['a lower-case Release ID', () => `release:${first.toLowerCase()}`, 'REQUEST_INVALID'],
    ['a Release ID with a tail', () => `release:${first}x`, 'REQUEST_INVALID'],
    ['a leading space', () => ' channel:production', 'REQUEST_INVALID'],
  ])(
    'an application call resolves %s to its Release or code',
    { tags: ['slow'] },
    async (_, target, expected) => {
      expect(await outcome(target())).toBe(expected)
    },
  )

  test('a Workspace is reached only with the scope, if the Environment allows it', async () => {
    expect(await outcome('workspace:default', ['query', 'mutation'])).toBe('TARGET_DENIED')
    // A caller without the scope cannot find out which Workspaces exist.
    expect(await outcome('workspace:none', ['query'])).toBe('TARGET_DENIED')
    harness.root.control.transaction((tx) => {
      tx.run(`update environment set configuration =
                json_set(configuration, '$.workspaceTargets', 'denied')`)
    })
    expect(await outcome('workspace:default')).toBe('TARGET_DENIED')
    expect(await outcome('channel:production')).toBe('first')
  })

  test('a call resolves without a promise once the Release is in memory', () => {
    const target = resolveTarget(harness.product, { scopes: ['query'] }, 'channel:production', {
      affinity: expect.unreachable,
    })
    expect(target).not.toBeInstanceOf(Promise)
  })
})

test('an operator finds Releases in every state except retired and gets Product codes', () => {
  expect(operatorOutcome('channel:production')).toBe(first)
  expect(operatorOutcome('workspace:draft')).toBe(published)
  expect(operatorOutcome(`release:${rejected}`)).toBe(rejected)
  expect(operatorOutcome(`release:${retired}`)).toBe('PRODUCT_RELEASE_RETIRED')
  expect(operatorOutcome('channel:beta')).toBe('PRODUCT_NOT_FOUND')
  expect(operatorOutcome('environment:default')).toBe('PRODUCT_NOT_FOUND')
  expect(operatorOutcome('nonsense')).toBe('PRODUCT_INVALID')
})

test('the Function catalog equals that of the manifest', async () => {
  const functions = [functionManifest('a.list'), functionManifest('b.send', { kind: 'mutation' })]
  const { releaseId } = await publishRelease(harness, { workspace: 'api', functions })
  expect(await listFunctions(harness.product, 'workspace:api')).toEqual({
    releaseId,
    functions,
    http: [],
  })
})

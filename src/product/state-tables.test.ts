/**
 * The state tables of Document 1 (Workspace HEAD, Release, Channel) and Document 2 (credential), a
 * row a test. The rows of the serving policy and of the Environment stand beside their rules.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  AUTHORIZED,
  functionManifest,
  makePackage,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
  type WorkspaceInput,
} from '../../build/testing/products.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { TableManifest } from '../value/manifest.ts'
import type { Json } from '../value/strict-json.ts'
import { promote } from './channels/promote.ts'
import { rollback } from './channels/rollback.ts'
import { readStatus } from './environments/status.ts'
import { retire } from './releases/retire.ts'
import { validate } from './releases/validate.ts'
import { type ExpectedHead, publish } from './workspaces/publish.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const requestId = REQUEST_ID

function push(source: string, expectedHead: ExpectedHead) {
  const frame = [makePackage({ source })]
  return publish(harness.product, harness.actor, {
    frame,
    expectedHead,
    requestId,
    authorized: AUTHORIZED,
  })
}

async function servable(input: WorkspaceInput): Promise<ReleaseId> {
  return (await publishRelease(harness, input)).releaseId
}

async function unvalidated(input: WorkspaceInput): Promise<ReleaseId> {
  return (await publishRelease(harness, { ...input, validate: false })).releaseId
}

function check(releaseId: ReleaseId, against: string | null = null) {
  return validate(harness.product, harness.actor, { releaseId, against, requestId })
}

function bind(releaseId: ReleaseId, expectedReleaseId: 'empty' | ReleaseId | null = null) {
  return promote(harness.product, harness.actor, {
    channel: 'production',
    releaseId,
    expectedReleaseId,
    requestId,
  })
}

function back(targetReleaseId: ReleaseId, expectedReleaseId: ReleaseId, channel = 'production') {
  const input = { channel, targetReleaseId, expectedReleaseId, requestId }
  return rollback(harness.product, harness.actor, input)
}

function giveUp(releaseId: ReleaseId): void {
  retire(harness.product, harness.actor, { releaseId, requestId })
}

function stateOf(releaseId: ReleaseId): string | undefined {
  return readStatus(harness.product).releases.find((each) => each.releaseId === releaseId)?.state
}

function boundTo(): ReleaseId | undefined {
  const { channels } = readStatus(harness.product)
  return channels.find(({ name }) => name === 'production')?.releaseId
}

/** The code that `work` ends with, thrown or rejected. */
async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

describe('Workspace HEAD', () => {
  test('no revision | publish with expected head empty | new revision, not replayed', async () => {
    const published = await push('a', 'empty')
    expect(published).toMatchObject({ replayed: false })
    expect(readStatus(harness.product).workspaces[0]).toMatchObject({
      revisionId: published.revisionId,
    })
  })

  test('a revision | publish with expected head = current | new revision', async () => {
    const first = await push('a', 'empty')
    const second = await push('b', first.revisionId)
    expect(second.replayed).toBe(false)
    expect(second.revisionId).not.toBe(first.revisionId)
  })

  test('a revision | same package and precondition again | same revision, replayed', async () => {
    const first = await push('a', 'empty')
    await push('b', first.revisionId)
    expect(await push('a', 'empty')).toEqual({ ...first, replayed: true })
    expect(readStatus(harness.product).releases).toHaveLength(2)
  })

  test('a revision | publish with a stale head | CAS conflict', async () => {
    const first = await push('a', 'empty')
    await push('b', first.revisionId)
    expect(await codeOf(() => push('c', 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(await codeOf(() => push('c', first.revisionId))).toBe('PRODUCT_CAS_CONFLICT')
  })

  test('several Workspaces | publish into one | the HEADs of the others stay', async () => {
    const one = await publishRelease(harness, { workspace: 'one' })
    const two = await publishRelease(harness, { workspace: 'two' })
    const next = await publishRelease(harness, { workspace: 'one', source: 'next' })
    expect(next.revisionId).not.toBe(one.revisionId)
    const heads = readStatus(harness.product).workspaces.map(({ name, releaseId }) => [
      name,
      releaseId,
    ])
    expect(heads).toEqual([
      ['one', next.releaseId],
      ['two', two.releaseId],
    ])
  })
})

const FAILING = { functions: [functionManifest('only.inTheManifest')] }

describe('Release', () => {
  const rejected = async (): Promise<ReleaseId> => {
    const releaseId = await unvalidated(FAILING)
    harness.engine.describe = async () => ({ functions: [], tables: [] }) as unknown as Json
    await codeOf(() => check(releaseId))
    return releaseId
  }

  test('published | nothing | is no traffic', async () => {
    const releaseId = await unvalidated({})
    expect(stateOf(releaseId)).toBe('published')
    expect(await codeOf(() => bind(releaseId))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('published | validate, candidate valid | validated', async () => {
    const releaseId = await unvalidated({})
    expect(await check(releaseId)).toMatchObject({ state: 'validated' })
    expect(stateOf(releaseId)).toBe('validated')
  })

  test('published | validate, a defect of its own | rejected', async () => {
    expect(stateOf(await rejected())).toBe('rejected')
  })

  test('published | validate against a Channel that it does not fit | published', async () => {
    await bind(await servable({ tables: [NOTES] }), 'empty')
    const releaseId = await unvalidated({})
    harness.engine.describe = async () => ({ functions: [], tables: [] }) as unknown as Json
    expect(await codeOf(() => check(releaseId, 'production'))).toBe('PRODUCT_INCOMPATIBLE')
    expect(stateOf(releaseId)).toBe('published')
  })

  test('validated | validate | validated', async () => {
    const releaseId = await servable({})
    expect(await check(releaseId)).toMatchObject({ state: 'validated' })
  })

  test('rejected | validate | rejected', async () => {
    const releaseId = await rejected()
    expect(await codeOf(() => check(releaseId))).toBe('PRODUCT_INCOMPATIBLE')
    expect(stateOf(releaseId)).toBe('rejected')
  })

  test.each([
    ['published', () => unvalidated({})],
    ['validated', () => servable({})],
    ['rejected', () => rejected()],
  ])('%s | retire, nothing uses it | retired', async (_, make) => {
    const releaseId = await make()
    giveUp(releaseId)
    expect(stateOf(releaseId)).toBe('retired')
  })

  test('validated | retire, a Channel uses it | conflict', async () => {
    const releaseId = await servable({})
    await bind(releaseId)
    expect(await codeOf(() => giveUp(releaseId))).toBe('PRODUCT_STATE_CONFLICT')
    expect(stateOf(releaseId)).toBe('validated')
  })

  test('retired | retire | retired', async () => {
    const releaseId = await servable({})
    giveUp(releaseId)
    giveUp(releaseId)
    expect(stateOf(releaseId)).toBe('retired')
  })

  test('retired | validate or promote | gone', async () => {
    const releaseId = await servable({})
    giveUp(releaseId)
    expect(await codeOf(() => check(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
    expect(await codeOf(() => bind(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
  })
})

const NOTES: TableManifest = { name: 'notes', fields: { body: { type: 'string' } }, indexes: [] }

describe('Channel', () => {
  let [a, b]: ReleaseId[] = []
  beforeEach(async () => {
    a = await servable({ source: 'a' })
    b = await servable({ source: 'b' })
  })

  test('unbound | promote with expected empty | bound', async () => {
    expect(await bind(a!, 'empty')).toMatchObject({
      releaseId: a,
      previousReleaseId: null,
      revision: 1n,
    })
  })

  test('unbound | promote with another expectation | CAS conflict', async () => {
    expect(await codeOf(() => bind(a!, b!))).toBe('PRODUCT_CAS_CONFLICT')
    expect(boundTo()).toBeUndefined()
  })

  test('unbound | rollback | not found', async () => {
    expect(await codeOf(() => back(a!, b!))).toBe('PRODUCT_NOT_FOUND')
  })

  test('bound | promote with expected = bound, or without one | bound to the next', async () => {
    await bind(a!)
    expect(await bind(b!, a!)).toMatchObject({ releaseId: b, previousReleaseId: a })
    expect(await bind(a!)).toMatchObject({ releaseId: a, previousReleaseId: b })
  })

  test('bound | rollback with the exact current, target in the history | target', async () => {
    await bind(a!)
    await bind(b!)
    expect(await back(a!, b!)).toMatchObject({
      name: 'production',
      releaseId: a,
      previousReleaseId: b,
      revision: 3n,
      serving: 'converged',
    })
    expect(readStatus(harness.product).channels[0]!.history).toEqual([b, a])
    await harness.product.audit.whenIdle()
    expect(harness.audited.at(-1)).toMatchObject({
      operation: 'product.channel.rollback',
      subject: `production:${a}`,
    })
    expect(await back(b!, a!)).toMatchObject({ releaseId: b, revision: 4n })
  })

  test('bound | rollback with another current | CAS conflict', async () => {
    await bind(a!)
    await bind(b!)
    expect(await codeOf(() => back(a!, a!))).toBe('PRODUCT_CAS_CONFLICT')
    await back(a!, b!)
    // What the first answer said is in the status; the same request does not move it again.
    expect(await codeOf(() => back(a!, b!))).toBe('PRODUCT_CAS_CONFLICT')
    expect(boundTo()).toBe(a)
  })

  test('bound | rollback to what was never in its history | conflict', async () => {
    await bind(a!)
    const elsewhere = { channel: 'beta', releaseId: b!, expectedReleaseId: null, requestId }
    await promote(harness.product, harness.actor, elsewhere)
    expect(await codeOf(() => back(b!, a!))).toBe('PRODUCT_STATE_CONFLICT')
    expect(boundTo()).toBe(a)
  })

  test('bound | rollback to what it is bound to | conflict', async () => {
    await bind(a!)
    expect(await codeOf(() => back(a!, a!))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('bound | rollback to an unknown Release | not found', async () => {
    await bind(a!)
    const unknown = harness.system.ids.make('rel')
    expect(await codeOf(() => back(unknown, a!))).toBe('PRODUCT_NOT_FOUND')
  })

  test('bound | rollback to a retired Release | gone', async () => {
    await bind(a!)
    await bind(b!)
    giveUp(a!)
    expect(await codeOf(() => back(a!, b!))).toBe('PRODUCT_RELEASE_RETIRED')
    expect(boundTo()).toBe(b)
  })

  test('bound | rollback to what may not read the stored documents | incompatible', async () => {
    const wide = await servable({ tables: [NOTES] })
    const narrow = await servable({ tables: [{ ...NOTES, fields: {} }] })
    await bind(narrow)
    await bind(wide)
    harness.engine.documents.set('notes', [new Map([['body', 'text']])])
    const rule = expect.stringMatching(/^1 stored documents do not fit the validators: notes_0/)
    await expect(back(narrow, wide)).rejects.toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [{ path: 'checks.documents:notes', rule }],
    })
    expect(boundTo()).toBe(wide)
  })

  test('bound | two rollbacks at once under one expectation | one winner', async () => {
    const c = await servable({ source: 'c' })
    for (const releaseId of [a!, b!, c]) await bind(releaseId)
    const codes = await Promise.all([codeOf(() => back(a!, c)), codeOf(() => back(b!, c))])
    expect(codes.toSorted()).toEqual(['PRODUCT_CAS_CONFLICT', 'none'])
    expect(readStatus(harness.product).channels[0]!.revision).toBe(4n)
  })
})

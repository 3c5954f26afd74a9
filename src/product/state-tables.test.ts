/**
 * The state tables of Workspace HEAD, Release and Channel (contract/management.md, States of
 * Workspaces and Channels): one test for each row. The tables of credentials, the serving policy
 * and the Environment are tested beside their rules.
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
} from '../../testing/products.ts'
import { bindChannel, faultCode, releaseState, retireRelease } from '../../testing/releases.ts'
import type { ReleaseId } from '../value/ids.ts'
import type { TableManifest } from '../value/manifest.ts'
import type { Json } from '../value/strict-json.ts'
import { promote } from './channels/promote.ts'
import { rollback } from './channels/rollback.ts'
import { readStatus } from './environments/status.ts'
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
  return bindChannel(harness, releaseId, { expectedReleaseId })
}

function back(targetReleaseId: ReleaseId, expectedReleaseId: ReleaseId, channel = 'production') {
  const input = { channel, targetReleaseId, expectedReleaseId, requestId }
  return rollback(harness.product, harness.actor, input)
}

const stateOf = (releaseId: ReleaseId) => releaseState(harness, releaseId)

function boundTo(): ReleaseId | undefined {
  const { channels } = readStatus(harness.product)
  return channels.find(({ name }) => name === 'production')?.releaseId
}

describe('a Workspace HEAD', () => {
  test('a HEAD without a revision moves to a publication that expects it to be empty', async () => {
    const published = await push('a', 'empty')
    expect(published).toMatchObject({ replayed: false })
    expect(readStatus(harness.product).workspaces[0]).toMatchObject({
      revisionId: published.revisionId,
    })
  })

  test('a HEAD moves to a publication that expects its revision', async () => {
    const first = await push('a', 'empty')
    const second = await push('b', first.revisionId)
    expect(second.replayed).toBe(false)
    expect(second.revisionId).not.toBe(first.revisionId)
  })

  test('a HEAD stays for a repeat, which returns the first revision as replayed', async () => {
    const first = await push('a', 'empty')
    await push('b', first.revisionId)
    expect(await push('a', 'empty')).toEqual({ ...first, replayed: true })
    expect(readStatus(harness.product).releases).toHaveLength(2)
  })

  test('a publication that expects a stale revision conflicts, and the HEAD stays', async () => {
    const first = await push('a', 'empty')
    await push('b', first.revisionId)
    expect(await faultCode(() => push('c', 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(await faultCode(() => push('c', first.revisionId))).toBe('PRODUCT_CAS_CONFLICT')
  })

  test('a HEAD stays when another Workspace is published', async () => {
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

describe('a Release', () => {
  const rejected = async (): Promise<ReleaseId> => {
    const releaseId = await unvalidated(FAILING)
    harness.engine.describe = async () => ({ functions: [], tables: [] }) as unknown as Json
    await faultCode(() => check(releaseId))
    return releaseId
  }

  test('a published Release cannot be promoted', async () => {
    const releaseId = await unvalidated({})
    expect(stateOf(releaseId)).toBe('published')
    expect(await faultCode(() => bind(releaseId))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('a published Release becomes validated by a successful validation', async () => {
    const releaseId = await unvalidated({})
    expect(await check(releaseId)).toMatchObject({ state: 'validated' })
    expect(stateOf(releaseId)).toBe('validated')
  })

  test('a published Release becomes rejected for a defect of its code', async () => {
    expect(stateOf(await rejected())).toBe('rejected')
  })

  test('a Release that does not fit a Channel stays published', async () => {
    await bind(await servable({ tables: [NOTES] }), 'empty')
    const releaseId = await unvalidated({})
    harness.engine.describe = async () => ({ functions: [], tables: [] }) as unknown as Json
    expect(await faultCode(() => check(releaseId, 'production'))).toBe('PRODUCT_INCOMPATIBLE')
    expect(stateOf(releaseId)).toBe('published')
  })

  test('a validated Release stays validated after another validation', async () => {
    const releaseId = await servable({})
    expect(await check(releaseId)).toMatchObject({ state: 'validated' })
  })

  test('a rejected Release stays rejected after another validation', async () => {
    const releaseId = await rejected()
    expect(await faultCode(() => check(releaseId))).toBe('PRODUCT_INCOMPATIBLE')
    expect(stateOf(releaseId)).toBe('rejected')
  })

  test.each([
    ['published', () => unvalidated({})],
    ['validated', () => servable({})],
    ['rejected', () => rejected()],
  ])('a Release that is %s and unused can be retired', async (_, make) => {
    const releaseId = await make()
    retireRelease(harness, releaseId)
    expect(stateOf(releaseId)).toBe('retired')
  })

  test('a Release that a Channel is bound to cannot be retired', async () => {
    const releaseId = await servable({})
    await bind(releaseId)
    expect(await faultCode(() => retireRelease(harness, releaseId))).toBe('PRODUCT_STATE_CONFLICT')
    expect(stateOf(releaseId)).toBe('validated')
  })

  test('a retired Release stays retired', async () => {
    const releaseId = await servable({})
    retireRelease(harness, releaseId)
    retireRelease(harness, releaseId)
    expect(stateOf(releaseId)).toBe('retired')
  })

  test('a retired Release can be neither validated nor promoted', async () => {
    const releaseId = await servable({})
    retireRelease(harness, releaseId)
    expect(await faultCode(() => check(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
    expect(await faultCode(() => bind(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
  })
})

const NOTES: TableManifest = { name: 'notes', fields: { body: { type: 'string' } }, indexes: [] }

describe('a Channel', () => {
  let [a, b]: ReleaseId[] = []
  beforeEach(async () => {
    a = await servable({ source: 'a' })
    b = await servable({ source: 'b' })
  })

  test('a Channel without a binding is bound by a promotion that expects none', async () => {
    expect(await bind(a!, 'empty')).toMatchObject({
      releaseId: a,
      previousReleaseId: null,
      revision: 1n,
    })
  })

  test('a Channel without a binding rejects a promotion that expects one', async () => {
    expect(await faultCode(() => bind(a!, b!))).toBe('PRODUCT_CAS_CONFLICT')
    expect(boundTo()).toBeUndefined()
  })

  test('a Channel without a binding cannot be rolled back', async () => {
    expect(await faultCode(() => back(a!, b!))).toBe('PRODUCT_NOT_FOUND')
  })

  test('a Channel moves to a promotion that expects its binding or any', async () => {
    await bind(a!)
    expect(await bind(b!, a!)).toMatchObject({ releaseId: b, previousReleaseId: a })
    expect(await bind(a!)).toMatchObject({ releaseId: a, previousReleaseId: b })
  })

  test('a Channel moves back to a Release of its history under the expected binding', async () => {
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

  test('a Channel rejects a rollback that expects another binding', async () => {
    await bind(a!)
    await bind(b!)
    expect(await faultCode(() => back(a!, a!))).toBe('PRODUCT_CAS_CONFLICT')
    await back(a!, b!)
    // The result of the first request is in the status; a repeat does not move the Channel again.
    expect(await faultCode(() => back(a!, b!))).toBe('PRODUCT_CAS_CONFLICT')
    expect(boundTo()).toBe(a)
  })

  test('a Channel rejects a rollback to a Release outside its history', async () => {
    await bind(a!)
    const elsewhere = { channel: 'beta', releaseId: b!, expectedReleaseId: null, requestId }
    await promote(harness.product, harness.actor, elsewhere)
    expect(await faultCode(() => back(b!, a!))).toBe('PRODUCT_STATE_CONFLICT')
    expect(boundTo()).toBe(a)
  })

  test('a Channel rejects a rollback to its present binding', async () => {
    await bind(a!)
    expect(await faultCode(() => back(a!, a!))).toBe('PRODUCT_STATE_CONFLICT')
  })

  test('a Channel rejects a rollback to an unknown Release', async () => {
    await bind(a!)
    const unknown = harness.system.ids.make('rel')
    expect(await faultCode(() => back(unknown, a!))).toBe('PRODUCT_NOT_FOUND')
  })

  test('a Channel rejects a rollback to a retired Release', async () => {
    await bind(a!)
    await bind(b!)
    retireRelease(harness, a!)
    expect(await faultCode(() => back(a!, b!))).toBe('PRODUCT_RELEASE_RETIRED')
    expect(boundTo()).toBe(b)
  })

  test('a Channel rejects a rollback to a Release that stored documents do not fit', async () => {
    const wide = await servable({ tables: [NOTES] })
    const short = { type: 'string', maximumLength: 3 } as const
    const narrow = await servable({ tables: [{ ...NOTES, fields: { body: short } }] })
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

  test('a Channel accepts one of two concurrent rollbacks that expect one binding', async () => {
    const c = await servable({ source: 'c' })
    for (const releaseId of [a!, b!, c]) await bind(releaseId)
    const codes = await Promise.all([faultCode(() => back(a!, c)), faultCode(() => back(b!, c))])
    expect(codes.toSorted()).toEqual(['PRODUCT_CAS_CONFLICT', 'none'])
    expect(readStatus(harness.product).channels[0]!.revision).toBe(4n)
  })
})

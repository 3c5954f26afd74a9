import { readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  AUTHORIZED,
  DYING_PUBLISHER,
  makePackage,
  OTHER_PROJECT_ID,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
  workspaceParts,
} from '../../../testing/products.ts'
import { sha256 } from '../../system/digests.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import { encodePackage } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import { readStatus } from '../environments/status.ts'
import { type ExpectedHead, publish } from './publish.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function push(frame: Uint8Array, expectedHead: ExpectedHead) {
  const authorized = AUTHORIZED
  const request = { frame: [frame], expectedHead, requestId: REQUEST_ID, authorized }
  return publish(harness.product, harness.actor, request)
}

/** Makes a package whose parts were modified before the frame is encoded. */
function modified(
  modify: (parts: ReturnType<typeof workspaceParts>) => void,
  text = canonicalJson,
) {
  const parts = workspaceParts()
  modify(parts)
  const manifest = text(parts.manifest as unknown as Json)
  return encodePackage({ manifest, artifact: parts.artifact }, sha256)
}

describe('a publication', () => {
  test('a publication creates one revision and one Release and moves the HEAD', async () => {
    const first = await push(makePackage({ source: 'a' }), 'empty')
    expect(first).toMatchObject({ workspace: 'default', replayed: false })
    const second = await push(makePackage({ source: 'b' }), first.revisionId)
    const status = readStatus(harness.product)
    expect(status.revision).toBe(2n)
    expect(status.workspaces).toEqual([
      { name: 'default', revisionId: second.revisionId, releaseId: second.releaseId },
    ])
    expect(status.releases.map(({ releaseId, state }) => [releaseId, state])).toEqual([
      [second.releaseId, 'published'],
      [first.releaseId, 'published'],
    ])
    await harness.product.audit.whenIdle()
    expect(harness.audited.map(({ operation, subject }) => [operation, subject])).toEqual([
      ['product.workspace.publish', first.revisionId],
      ['product.workspace.publish', second.revisionId],
    ])
  })

  test('a repeated publication has no effect, however far the HEAD has moved since', async () => {
    const frames = ['a', 'b', 'c'].map((source) => makePackage({ source }))
    const results = []
    let head: ExpectedHead = 'empty'
    for (const frame of frames) {
      const published = await push(frame, head)
      results.push({ frame, head, published })
      head = published.revisionId
    }
    const before = readStatus(harness.product)
    for (const { frame, head: expected, published } of results) {
      expect(await push(frame, expected)).toEqual({ ...published, replayed: true })
    }
    expect(readStatus(harness.product)).toEqual(before)
  })

  test('a known package under a new precondition creates a new revision', async () => {
    const frame = makePackage()
    const first = await push(frame, 'empty')
    const second = await push(frame, first.revisionId)
    expect(second.replayed).toBe(false)
    expect(second.releaseId).not.toBe(first.releaseId)
  })

  test('a publication with a stale, foreign or missing HEAD changes nothing', async () => {
    const first = await push(makePackage({ source: 'a' }), 'empty')
    const other = await push(makePackage({ workspace: 'other' }), 'empty')
    await push(makePackage({ source: 'b' }), first.revisionId)
    const before = readStatus(harness.product)
    for (const head of ['empty', first.revisionId, other.revisionId] as const) {
      await expect(push(makePackage({ source: 'c' }), head)).rejects.toMatchObject({
        code: 'PRODUCT_CAS_CONFLICT',
      })
    }
    const fresh = makePackage({ workspace: 'fresh' })
    await expect(push(fresh, first.revisionId)).rejects.toMatchObject({
      code: 'PRODUCT_CAS_CONFLICT',
    })
    expect(readStatus(harness.product)).toEqual(before)
  })

  test('exactly one of 32 concurrent publications that expect one HEAD succeeds', {
    tags: ['slow'],
  }, async () => {
    const base = await push(makePackage({ source: 'base' }), 'empty')
    const outcomes = await Promise.allSettled(
      Array.from({ length: 32 }, (_, i) => push(makePackage({ source: `${i}` }), base.revisionId)),
    )
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(won).toHaveLength(1)
    expect(lost.map(({ reason }) => reason.code)).toEqual(Array(31).fill('PRODUCT_CAS_CONFLICT'))
    expect(readStatus(harness.product).releases).toHaveLength(2)
  })

  test('32 concurrent publications of one package create one Release', async () => {
    const frame = makePackage()
    const results = await Promise.all(Array.from({ length: 32 }, () => push(frame, 'empty')))
    expect(new Set(results.map(({ releaseId }) => releaseId)).size).toBe(1)
    expect(results.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(readStatus(harness.product).releases).toHaveLength(1)
  })

  test.each<[string, () => Uint8Array, string]>([
    ['is no package', () => new Uint8Array(100), 'package'],
    ['is empty', () => new Uint8Array(0), 'package'],
    [
      'belongs to another Project',
      () => makePackage({ projectId: OTHER_PROJECT_ID }),
      '$.projectId',
    ],
    [
      'names another digest',
      () => modified(({ manifest }) => (manifest.artifact.digest = `sha256:${'0'.repeat(64)}`)),
      '$.artifact',
    ],
    [
      'names another length',
      () => modified(({ manifest }) => (manifest.artifact.bytes += 1)),
      '$.artifact',
    ],
    ['has a manifest that is not canonical', () => modified(() => undefined, JSON.stringify), '$'],
    [
      'has an unknown field',
      () => modified(({ manifest }) => Object.assign(manifest, { x: 1 })),
      '$.x',
    ],
    [
      'has an artifact of another format',
      () =>
        modified((parts) => {
          parts.artifact = new TextEncoder().encode('SVCART??')
          parts.manifest.artifact = {
            digest: `sha256:${sha256(parts.artifact).toString('hex')}`,
            bytes: 8,
          }
        }),
      'artifact',
    ],
  ])('a publication of a frame that %s is rejected and leaves nothing', async (_, make, path) => {
    await expect(push(make(), 'empty')).rejects.toMatchObject({
      code: 'PRODUCT_INVALID',
      violations: [{ path }],
    })
    expect(readStatus(harness.product)).toMatchObject({
      revision: 0n,
      releases: [],
      workspaces: [],
    })
    expect(readdirSync(join(harness.directory, 'artifacts', 'sha256'))).toEqual([])
  })
})

/** Every third step in the short run. */
const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 3

describe('a publisher that is killed', () => {
  test('a killed publisher leaves a complete publication or none and can repeat it', {
    tags: ['slow'],
  }, async () => {
    // Goal: no matter at which step the process is killed, no row references missing bytes and a
    // repeat succeeds. Method: a child publishes and kills itself before its nth durable step; the
    // test then checks the root and repeats the publication.
    let outcome = { deaths: 0, completed: false }
    for (let deathAt = 0; !outcome.completed; deathAt += STRIDE) {
      const child = Bun.spawnSync([process.execPath, DYING_PUBLISHER, String(deathAt)], { env: {} })
      const [path, head] = child.stdout.toString().trim().split('\n')
      expect(path, child.stderr.toString()).toBeTruthy()
      const completed = child.exitCode === 0
      outcome = { deaths: outcome.deaths + (completed ? 0 : 1), completed }
      const after = await openTestProduct({ directory: path! })
      const { workspaces, releases } = readStatus(after.product)
      expect(workspaces).toHaveLength(releases.length)
      for (const { releaseId } of releases) await after.product.releases.load(releaseId)
      expect(readdirSync(join(path!, 'artifacts', 'temporary'))).toEqual([])
      const repeated = await publish(after.product, after.actor, {
        frame: [makePackage({ source: 'dying' })],
        expectedHead: 'empty',
        requestId: REQUEST_ID,
        authorized: AUTHORIZED,
      })
      expect(repeated.replayed).toBe(releases.length === 1)
      await after.product.releases.load(repeated.releaseId)
      await after.product.audit.whenIdle()
      expect(after.audited.map(({ subject }) => subject)).toEqual([repeated.revisionId])
      expect(head).toBe(completed ? 'published' : undefined)
      await after.close()
    }
    expect(outcome.deaths * STRIDE).toBeGreaterThan(10)
  })
})

test('publishing a package again repairs the damaged files of its Release', async () => {
  const frame = makePackage()
  const { releaseId, revisionId } = await push(frame, 'empty')
  const { manifest, artifact } = readStatus(harness.product).releases[0]!
  for (const { digest, bytes } of [manifest, artifact]) {
    const hex = digest.slice('sha256:'.length)
    const path = join(harness.directory, 'artifacts', 'sha256', hex.slice(0, 2), hex.slice(2))
    truncateSync(path, bytes >> 1)
    const damaged = harness.product.releases.load(releaseId)
    await expect(damaged).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
  }
  await push(frame, revisionId)
  await harness.product.releases.load(releaseId)
})

test('a Release whose files were tampered with is corrupt', async () => {
  const { releaseId } = await publishRelease(harness, { validate: false })
  const { artifact } = readStatus(harness.product).releases[0]!
  const hex = artifact.digest.slice('sha256:'.length)
  const path = join(harness.directory, 'artifacts', 'sha256', hex.slice(0, 2), hex.slice(2))
  const bytes = new Uint8Array(await Bun.file(path).arrayBuffer())
  bytes[bytes.length - 1]! ^= 1
  await Bun.write(path, bytes)
  await expect(harness.product.releases.load(releaseId)).rejects.toMatchObject({
    code: 'PRODUCT_CORRUPT',
  })
})

/**
 * Goal: the state of HEAD, key and Environment at the commit decides whether a HEAD moves or a
 * Release is frozen. Method: each of them changes while a request is in flight.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Answer, CHAT, Developers } from '../../../../testing/development/developers.ts'
import { makePackage, type WorkspaceInput } from '../../../../testing/products.ts'
import { readStatus } from '../../../product/environments/status.ts'

let t: Developers
beforeAll(async () => {
  t = await Developers.open()
})
afterAll(() => t.close())
afterEach(() => t.reset())

/** Sends the first half of a package, runs `meanwhile`, then sends the rest. */
function putDuring(content: WorkspaceInput, meanwhile: () => unknown): Promise<Answer> {
  const frame = makePackage(content)
  const half = frame.length / 2
  let isTaken = false
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (isTaken) {
          await meanwhile()
          controller.enqueue(frame.subarray(half))
          controller.close()
        } else controller.enqueue(frame.subarray(0, half))
        isTaken = true
      },
    },
    { highWaterMark: 0 },
  )
  return t.put('empty', content, { body })
}

/** Runs `meanwhile` while the code of the Release is loaded. */
function freezeDuring(
  { workspace, revisionId }: { readonly workspace: string; readonly revisionId: string },
  meanwhile: () => unknown,
): Promise<Answer> {
  t.describeAs(CHAT.functions, meanwhile)
  return t.freeze(revisionId, workspace)
}

test('a key that is revoked during the upload does not move the HEAD', async () => {
  const content = t.unused()
  const { outcome } = await t.withOwnKey((revoke) => putDuring(content, revoke))
  expect(outcome).toBe('401 APPLICATION_KEY_INVALID')
  expect(await t.headOf(content.workspace)).toBeNull()
})

test('an Environment that changes during the upload keeps its HEAD', async () => {
  const changes: readonly [() => void, string][] = [
    [() => t.setEnvironment({ purpose: 'production' }), '404 ROUTE_NOT_FOUND'],
    [() => t.setEnvironment({ workspaceTargets: 'denied' }), '404 ROUTE_NOT_FOUND'],
    [() => t.setEnvironment({}, 'archived'), '503 UNAVAILABLE'],
  ]
  for (const [change, outcome] of changes) {
    const content = t.unused()
    expect((await putDuring(content, change)).outcome).toBe(outcome)
    t.setEnvironment({})
    expect(await t.headOf(content.workspace)).toBeNull()
  }
})

test('a key that is revoked during a freeze decides nothing', async () => {
  const synchronized = await t.synchronized()
  const { outcome } = await t.withOwnKey((revoke) => freezeDuring(synchronized, revoke))
  expect(outcome).toBe('401 APPLICATION_KEY_INVALID')
  expect(await t.headOf(synchronized.workspace)).toMatchObject({ state: 'published' })
})

test('a synchronization during a freeze wins: the former HEAD is not validated', async () => {
  const synchronized = await t.synchronized()
  const { workspace, content, revisionId, releaseId } = synchronized
  const next = { ...content, source: 'next' }
  const { outcome } = await freezeDuring(synchronized, () => t.put(revisionId, next))
  expect(outcome).toBe('409 PRODUCT_CAS_CONFLICT')
  const { releases } = readStatus(t.gateway.harness.product)
  expect(releases.find((each) => each.releaseId === releaseId)?.state).toBe('published')
  t.reset()
  const head = await t.headOf(workspace)
  const { body } = await t.freeze(head!.revisionId, workspace)
  expect(body.state).toBe('validated')
})

test('developers who synchronize one Workspace at once form one history', async () => {
  const { workspace } = t.unused()
  const keys = [t.key, t.gateway.issueKey('development'), t.gateway.issueKey('development')]
  const history: { readonly after: string; readonly revisionId: string }[] = []
  const conflicts: string[] = []
  // Each developer reads the HEAD, then publishes; the uploads of all overlap.
  const develop = async (own: string, developer: number) => {
    for (let save = 0; save < 8; save++) {
      const { body: state } = await t.send('GET', workspace, { key: own })
      const after = state.head?.revisionId ?? 'empty'
      const content = { ...CHAT, workspace, source: `${developer}.${save}` }
      const { outcome, body } = await t.put(after, content, { key: own })
      if (outcome === '201') history.push({ after, revisionId: body.revisionId })
      else conflicts.push(outcome)
    }
  }
  await Promise.all(keys.map(develop))
  expect(history.length + conflicts.length).toBe(24)
  expect(new Set(conflicts)).toEqual(new Set(['409 PRODUCT_CAS_CONFLICT']))
  const next = new Map(history.map(({ after, revisionId }) => [after, revisionId]))
  // No precondition succeeded twice, and the chain from `empty` has every revision.
  expect(next.size).toBe(history.length)
  let at: string = 'empty'
  for (let i = 0; i < history.length; i++) at = next.get(at)!
  expect(at).toBe((await t.headOf(workspace))?.revisionId)
})

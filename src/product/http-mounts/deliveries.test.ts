/** Deliveries as operators read and replay them, on both stores. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import {
  handlerManifest,
  hookManifest,
  mount,
  SECRET,
  send,
  setSecret,
} from '../../../testing/http/hooks.ts'
import {
  STORES,
  type StoredDocuments,
  storedDocuments,
} from '../../../testing/migrations/migration-bench.ts'
import { publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import { DeliverySizes } from '../../engine/scheduled-work/delivery-sizes.ts'
import type { OperationId, ReleaseId } from '../../value/ids.ts'
import { findApplied } from '../idempotency/idempotency-records.ts'
import { listDeliveries, readDelivery, replayDelivery } from './deliveries.ts'
import { removeMount } from './mounts.ts'

/** Deliveries on which a handler had its effect. */
let effects: string[] = []
/** Runs of the handler that fails. */
let failures = 0
const INPUT = {
  functions: [handlerManifest('hooks.fixed'), handlerManifest('hooks.onEvent')],
  tables: [],
  http: [hookManifest('event'), hookManifest('other')],
  handlers: {
    'hooks.onEvent': () => {
      failures += 1
      throw new Error('the total is missing')
    },
    'hooks.fixed': (_: unknown, { delivery }: { delivery: { id: string } }) => {
      effects.push(delivery.id)
      return null
    },
  },
}
const FIXED = { ...INPUT, http: [hookManifest('event', { function: 'hooks.fixed' })] }

describe.each(STORES)('on %s', (kind) => {
  let stored: StoredDocuments
  let gateway: TestGateway
  let current: ReleaseId
  beforeEach(async () => {
    ;[effects, failures] = [[], 0]
    stored = await storedDocuments(kind)
    gateway = await openTestGateway({ ...INPUT, store: await stored.open() })
    current = gateway.releaseId
    setSecret(gateway, 'GITHUB', SECRET)
    mount(gateway, 'main')
  })
  afterEach(async () => {
    await gateway.close()
    await stored.close()
  })

  const product = () => gateway.harness.product
  const newOperation = () => gateway.harness.system.ids.make('opn')
  const settled = () => gateway.engine.scheduler.whenSettled()

  /** Sends an event and waits for the end of its first run. */
  async function failed(route = 'event', body = '{"total":null}'): Promise<string> {
    const response = await send(gateway, `/main/${route}`, { body })
    expect(response.status).toBe(202)
    await settled()
    return (await response.json()).deliveryId
  }

  async function promote(input: typeof INPUT, source: string): Promise<ReleaseId> {
    const { releaseId } = await publishRelease(gateway.harness, { ...input, source })
    await bindChannel(gateway.harness, releaseId, { expectedReleaseId: current })
    current = releaseId
    await product().serving.whenIdle()
    return releaseId
  }

  function replay(deliveryId: string, operationId: OperationId = newOperation(), of = 'main') {
    const input = { mount: of, deliveryId, operationId, requestId: REQUEST_ID }
    return replayDelivery(product(), gateway.harness.actor, input)
  }

  const stateOf = (deliveryId: string, mayReadContent = false) =>
    readDelivery(product(), { mount: 'main', deliveryId, mayReadContent })

  const conflict = (path: string) =>
    expect.objectContaining({
      code: 'PRODUCT_STATE_CONFLICT',
      violations: [expect.objectContaining({ path })],
    })

  test('a failed delivery has its effect once after a corrected Release and a replay', async () => {
    const id = await failed()
    expect(await stateOf(id, true)).toMatchObject({
      mount: 'main',
      route: 'event',
      method: 'POST',
      path: '/event',
      bodyBytes: 14,
      state: 'failed',
      attempts: 1,
      lastErrorCode: 'FUNCTION_FAILED',
      lastErrorMessage: expect.stringContaining('the total is missing'),
      hasContent: true,
      content: {
        headers: { 'content-type': 'application/json' },
        query: {},
        body: Buffer.from('{"total":null}').toString('base64url'),
      },
    })
    const releaseId = await promote(FIXED, 'fixed')
    const operationId = newOperation()
    const first = await replay(id, operationId)
    const expected = { state: 'pending', function: 'hooks.fixed', releaseId, attempts: 1 }
    expect(first).toMatchObject({ result: expected, operation: { replayed: false } })
    await settled()
    const again = await replay(id, operationId)
    expect(again).toMatchObject({ result: first.result, operation: { replayed: true } })
    await settled()
    expect([effects, failures]).toEqual([[id], 1])
    const ended = { state: 'succeeded', attempts: 2, lastErrorMessage: null }
    expect(await stateOf(id)).toMatchObject(ended)
    expect(findApplied(product(), 'http_mount', operationId).kind).toBe('http_mount.replay')
    await product().audit.close()
    const audited = gateway.harness.audited.filter((each) => each.operationId === operationId)
    expect(audited).toMatchObject([{ operation: 'product.http_mount.replay', subject: id }])
  })

  test('a repeat whose record was lost in a crash does not run the handler again', {
    tags: ['slow'],
  }, async () => {
    const id = await failed('other')
    const operationId = newOperation()
    await gateway.engine.scheduler.rerun(id, {
      function: 'hooks.onEvent',
      kind: 'mutation',
      releaseId: current,
      rerunBy: operationId,
    })
    await settled()
    // What is served now has no such hook, which only another replay would need.
    await promote(FIXED, 'fixed')
    const { result, operation } = await replay(id, operationId)
    expect([result.state, result.attempts, operation.replayed]).toEqual(['failed', 2, false])
    await settled()
    expect([effects, failures]).toEqual([[], 2])
    await expect(replay(id)).rejects.toEqual(conflict('scheduledId'))
  })

  test('only a failed delivery is replayed, with the hook of what is served', {
    tags: ['slow'],
  }, async () => {
    const id = await failed()
    const other = await failed('other')
    await promote(FIXED, 'fixed')
    await expect(replay(other)).rejects.toEqual(conflict('scheduledId'))
    await replay(id)
    await settled()
    await expect(replay(id)).rejects.toEqual(conflict('scheduledId'))
    mount(gateway, 'main', { target: 'channel:staging' })
    await expect(replay(other)).rejects.toEqual(conflict('mount'))
    expect(effects).toEqual([id])
  })

  test('a replay waits for room among the unfinished deliveries of the mount', {
    tags: ['slow'],
  }, async () => {
    const id = await failed()
    await promote(FIXED, 'fixed')
    const operationId = newOperation()
    const room = vi.spyOn(DeliverySizes.prototype, 'hasRoomToRun').mockReturnValue(false)
    try {
      await expect(replay(id, operationId)).rejects.toMatchObject({
        code: 'PRODUCT_UNAVAILABLE',
        cause: expect.objectContaining({ code: 'BUSY' }),
      })
      expect(room).toHaveBeenCalledWith('main')
      await settled()
      expect(await stateOf(id)).toMatchObject({ state: 'failed', attempts: 1 })
    } finally {
      room.mockRestore()
    }
    const { operation } = await replay(id, operationId)
    expect(operation.replayed).toBe(false)
    await settled()
    expect(effects).toEqual([id])
    // A repeat needs no room.
    const full = vi.spyOn(DeliverySizes.prototype, 'hasRoomToRun').mockReturnValue(false)
    const repeat = await replay(id, operationId).finally(() => full.mockRestore())
    expect(repeat.operation.replayed).toBe(true)
  })

  test('a delivery is found below its own mount alone', { tags: ['slow'] }, async () => {
    const id = await failed()
    mount(gateway, 'second')
    const unknown = expect.objectContaining({ code: 'PRODUCT_NOT_FOUND' })
    await expect(replay(id, newOperation(), 'second')).rejects.toEqual(unknown)
    await expect(replay(gateway.harness.system.ids.make('sch'))).rejects.toEqual(unknown)
    removeMount(product(), gateway.harness.actor, {
      operationId: newOperation(),
      name: 'main',
      expectedRevision: null,
      changedAtMicros: gateway.harness.system.nowMicros(),
      requestId: REQUEST_ID,
    })
    await expect(stateOf(id)).rejects.toEqual(unknown)
  })

  test('an Operation ID replays one delivery alone', { tags: ['slow'] }, async () => {
    const [id, other] = [await failed(), await failed('other')]
    const operationId = newOperation()
    await replay(id, operationId)
    await expect(replay(other, operationId)).rejects.toMatchObject({
      code: 'PRODUCT_OPERATION_REUSED',
    })
    await settled()
    expect(failures).toBe(3)
  })

  test('a list has the deliveries with the state and the route, the newest first', {
    tags: ['slow'],
  }, async () => {
    const ids = [await failed(), await failed('other'), await failed('event', '{}')]
    await promote(FIXED, 'fixed')
    await replay(ids[0]!)
    await settled()
    const list = async (state: 'failed' | 'succeeded' | null, route: string | null) => {
      const query = { mount: 'main', state, route, after: null, limit: 10 }
      const { items, nextId } = await listDeliveries(product(), query)
      expect(nextId).toBeNull()
      return items.map(({ deliveryId }) => deliveryId)
    }
    expect(await list(null, null)).toEqual(ids.toReversed())
    expect(await list('failed', null)).toEqual([ids[2], ids[1]])
    expect(await list('failed', 'event')).toEqual([ids[2]])
    expect(await list('succeeded', null)).toEqual([ids[0]])
  })
})

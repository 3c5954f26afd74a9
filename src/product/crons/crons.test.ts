/** Crons of a Product: which Release's are in force, and what operators decide about them. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../build/testing/gateways.ts'
import {
  functionManifest,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
} from '../../../build/testing/products.ts'
import { bindChannel } from '../../../build/testing/releases.ts'
import type { OperationId, ReleaseId } from '../../value/ids.ts'
import type { CronManifest } from '../../value/manifest.ts'
import { changeEnvironment } from '../environments/environments.ts'
import { findApplied } from '../idempotency/idempotency-records.ts'
import { closeProduct } from '../product.ts'
import { retire } from '../releases/retire.ts'
import { cancelScheduled, listScheduled } from '../schedules/scheduled-work.ts'
import { setServingPolicy } from '../serving/serving-policy.ts'
import { type ActivateInput, activateCron, listCrons, runCron } from './crons.ts'

const tick = functionManifest('a.tick', { kind: 'mutation', visibility: 'internal', clients: [] })
const cron = (name: string, more: Partial<CronManifest> = {}): CronManifest => ({
  // A leap day: nothing is due while a test runs.
  ...{ name, schedule: '0 0 29 2 *', timeZone: 'UTC', everyMillis: null },
  ...{ function: 'a.tick', arguments: {}, overlap: 'skip' },
  ...more,
})

let gateway: TestGateway
let runs = 0
beforeEach(async () => {
  runs = 0
  gateway = await openTestGateway({
    ...{ functions: [tick], tables: [], crons: [cron('digest'), cron('sweep')] },
    handlers: { 'a.tick': () => runs++ },
  })
  await settled()
})
afterEach(() => gateway.close())

const product = () => gateway.harness.product
const newOperation = () => gateway.harness.system.ids.make('opn')
const listed = async (target: string | null = null) => (await listCrons(product(), target)).crons
const work = async () => (await listScheduled(product(), { after: null, limit: 100 })).items

async function settled(): Promise<void> {
  await product().serving.whenIdle()
  await product().crons.whenIdle()
  await gateway.engine.scheduler.whenSettled()
}

const activation = (more: Partial<ActivateInput> = {}): ActivateInput => ({
  ...{ operationId: newOperation(), name: 'digest', activation: 'disabled', expectedRevision: 0n },
  ...{ changedAtMicros: gateway.harness.system.nowMicros(), requestId: REQUEST_ID },
  ...more,
})
const activate = (input: ActivateInput) => activateCron(product(), gateway.harness.actor, input)

function publishing(crons: readonly CronManifest[], source: string) {
  return publishRelease(gateway.harness, { functions: [tick], crons, source })
}

async function policy(releases: readonly (readonly [ReleaseId, number])[], revision: bigint) {
  const { harness } = gateway
  await setServingPolicy(product(), harness.actor, {
    ...{ operationId: newOperation(), expectedRevision: revision },
    mode: releases.length === 1 ? 'atomic' : 'weighted',
    releases: releases.map(([releaseId, weight]) => ({ releaseId, weight })),
    ...{ changedAtMicros: harness.system.nowMicros(), requestId: REQUEST_ID },
  })
  await settled()
}

describe('in force', () => {
  test('are the Crons of Channel production without a policy', async () => {
    expect((await listCrons(product(), null)).releaseId).toBe(gateway.releaseId)
    expect((await listed()).map(({ name }) => name)).toEqual(['digest', 'sweep'])
    const next = await publishing([cron('other')], 'second')
    bindChannel(gateway.harness, next.releaseId, { expectedReleaseId: gateway.releaseId })
    await settled()
    expect((await listed()).map(({ name }) => name)).toEqual(['other'])
  })

  test('are those of the greatest weight of a policy, and ties go by ID', async () => {
    const second = (await publishing([cron('second')], 'second')).releaseId
    const third = (await publishing([cron('third')], 'third')).releaseId
    const names = async () => (await listed()).map(({ name }) => name)
    await policy(
      [
        [second, 4_000],
        [third, 6_000],
      ],
      0n,
    )
    expect(await names()).toEqual(['third'])
    await policy(
      [
        [second, 5_000],
        [third, 5_000],
      ],
      1n,
    )
    expect(await names()).toEqual(['second'])
    // A promotion of the Channel changes nothing while there is a policy.
    bindChannel(gateway.harness, third, { expectedReleaseId: gateway.releaseId })
    await settled()
    expect(await names()).toEqual(['second'])
  })

  test('is nothing before the first promotion', async () => {
    const harness = await openTestProduct()
    await expect(listCrons(harness.product, null)).rejects.toMatchObject({
      code: 'PRODUCT_NOT_FOUND',
    })
    await harness.close()
  })

  test('have a next run; other Releases have none, and an archived Environment neither', async () => {
    const next = (crons: Awaited<ReturnType<typeof listed>>) => crons[0]!.nextRunAtMicros
    expect(next(await listed())).toMatch(/^\d+$/)
    const other = await publishing([cron('other')], 'second')
    expect(next(await listed(`release:${other.releaseId}`))).toBeNull()
    changeEnvironment(product(), gateway.harness.actor, {
      ...{ operationId: newOperation(), change: { verb: 'archive', expectedRevision: 0n } },
      ...{ changedAtMicros: gateway.harness.system.nowMicros(), requestId: REQUEST_ID },
    })
    expect(next(await listed())).toBeNull()
  })
})

describe('an activation', () => {
  test('is kept across promotions, changes of the declaration and restarts', async () => {
    const { result, operation } = await activate(activation())
    expect(result).toMatchObject({ activation: 'disabled', revision: '1', nextRunAtMicros: null })
    expect(operation).toMatchObject({ kind: 'cron.disable', replayed: false, revision: 1n })
    const changed = cron('digest', { schedule: '0 0 1 1 *', overlap: 'queue' })
    const next = await publishing([changed], 'second')
    bindChannel(gateway.harness, next.releaseId, { expectedReleaseId: gateway.releaseId })
    await settled()
    expect(await listed()).toMatchObject([{ activation: 'disabled', revision: '1' }])
    const { directory } = gateway.harness
    await closeProduct(product())
    const reopened = await openTestProduct({ directory })
    const { crons } = await listCrons(reopened.product, null)
    expect(crons).toMatchObject([{ name: 'digest', activation: 'disabled', revision: '1' }])
    await closeProduct(reopened.product)
    Object.assign(gateway.harness, { close: async () => undefined })
  })

  test('needs the exact revision, and one of two at once wins', async () => {
    const outcomes = await Promise.allSettled([activate(activation()), activate(activation())])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(activate(activation())).rejects.toMatchObject({ code: 'PRODUCT_CAS_CONFLICT' })
    await activate(activation({ expectedRevision: 1n, activation: 'enabled' }))
    expect((await listed())[0]).toMatchObject({ activation: 'enabled', revision: '2' })
  })

  test('that is repeated returns the first result, also after later changes', async () => {
    const input = activation()
    const first = await activate(input)
    await activate(activation({ expectedRevision: 1n, activation: 'enabled' }))
    const again = await activate(input)
    expect(again.result).toEqual(first.result)
    expect(again.operation).toEqual({ ...first.operation, replayed: true })
    expect(findApplied(product(), 'cron', input.operationId)).toMatchObject({ revision: 1n })
    await expect(activate({ ...input, name: 'sweep' })).rejects.toMatchObject({
      code: 'PRODUCT_OPERATION_REUSED',
    })
    expect((await listed())[0]).toMatchObject({ activation: 'enabled', revision: '2' })
  })

  test('of a Cron that is not in force is not found', async () => {
    await expect(activate(activation({ name: 'absent' }))).rejects.toMatchObject({
      code: 'PRODUCT_NOT_FOUND',
    })
  })

  test('that enables gives the next run from then on', async () => {
    await activate(activation())
    expect((await listed())[0]!.nextRunAtMicros).toBeNull()
    await activate(activation({ expectedRevision: 1n, activation: 'enabled' }))
    await settled()
    const { nextRunAtMicros } = (await listed())[0]!
    expect(new Date(Number(nextRunAtMicros) / 1_000).toISOString()).toMatch(/-02-29T00:00:00/)
  })
})

describe('a run by hand', () => {
  const run = (operationId: OperationId, name = 'digest') =>
    runCron(product(), gateway.harness.actor, { operationId, name, requestId: REQUEST_ID })

  test('is scheduled once for its Operation ID', async () => {
    const operationId = newOperation()
    const [first, second] = await Promise.all([run(operationId), run(operationId)])
    expect(second.result.scheduledId).toBe(first.result.scheduledId)
    await settled()
    const again = await run(operationId)
    expect(again).toMatchObject({ result: first.result, operation: { replayed: true } })
    expect([runs, (await work()).length]).toEqual([1, 1])
    expect(findApplied(product(), 'cron', operationId)).toMatchObject({ kind: 'cron.run' })
    await expect(run(operationId, 'sweep')).rejects.toMatchObject({
      code: 'PRODUCT_OPERATION_REUSED',
    })
  })

  test('shows in the list as the last run', async () => {
    await run(newOperation())
    await settled()
    const [digest, sweep] = await listed()
    expect([digest!.lastRunAtMicros, sweep!.lastRunAtMicros]).toEqual([
      expect.stringMatching(/^\d+$/),
      null,
    ])
  })

  test('pins its Release until it has ended', async () => {
    changeEnvironment(product(), gateway.harness.actor, {
      ...{ operationId: newOperation(), change: { verb: 'archive', expectedRevision: 0n } },
      ...{ changedAtMicros: gateway.harness.system.nowMicros(), requestId: REQUEST_ID },
    })
    await run(newOperation())
    const next = await publishing([cron('other')], 'second')
    bindChannel(gateway.harness, next.releaseId, { expectedReleaseId: gateway.releaseId })
    const retiring = () =>
      retire(product(), gateway.harness.actor, {
        ...{ releaseId: gateway.releaseId, requestId: REQUEST_ID },
      })
    expect(retiring).toThrow(expect.objectContaining({ code: 'PRODUCT_STATE_CONFLICT' }))
    changeEnvironment(product(), gateway.harness.actor, {
      ...{ operationId: newOperation(), change: { verb: 'restore', expectedRevision: 1n } },
      ...{ changedAtMicros: gateway.harness.system.nowMicros(), requestId: REQUEST_ID },
    })
    // Due work of a restored Environment starts at once, not at the next look at the clock.
    await expect.poll(() => runs).toBe(1)
  })
})

describe('a cancellation', () => {
  test('is stored with its Operation ID, and an exact repeat returns the first result', async () => {
    changeEnvironment(product(), gateway.harness.actor, {
      ...{ operationId: newOperation(), change: { verb: 'archive', expectedRevision: 0n } },
      ...{ changedAtMicros: gateway.harness.system.nowMicros(), requestId: REQUEST_ID },
    })
    const { result } = await runCron(product(), gateway.harness.actor, {
      ...{ operationId: newOperation(), name: 'digest', requestId: REQUEST_ID },
    })
    const operationId = newOperation()
    const cancel = (scheduledId = result.scheduledId, id = operationId) =>
      cancelScheduled(product(), gateway.harness.actor, {
        ...{ scheduledId, operationId: id, requestId: REQUEST_ID },
      })
    const first = await cancel()
    expect(first).toMatchObject({
      ...{ result: { state: 'canceled' }, operation: { kind: 'schedule.cancel' } },
    })
    expect(await cancel()).toEqual({
      result: first.result,
      operation: { ...first.operation, replayed: true },
    })
    const other = 'sch_01MCC5RM00440WAKYHT0DB49BM'
    await expect(cancel(other)).rejects.toMatchObject({ code: 'PRODUCT_OPERATION_REUSED' })
    await expect(cancel(other, newOperation())).rejects.toMatchObject({ code: 'PRODUCT_NOT_FOUND' })
  })
})

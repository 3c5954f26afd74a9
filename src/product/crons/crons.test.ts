/** Crons of a Product: the Release whose Crons are in force, and the activation by operators. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import {
  functionManifest,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
} from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import type { OperationId, ReleaseId } from '../../value/ids.ts'
import type { CronManifest } from '../../value/manifest.ts'
import { changeEnvironment, readEnvironment } from '../environments/environments.ts'
import { findApplied } from '../idempotency/idempotency-records.ts'
import { closeProduct } from '../product.ts'
import { retire } from '../releases/retire.ts'
import { cancelScheduled } from '../schedules/scheduled-work.ts'
import { setServingPolicy } from '../serving/serving-policy.ts'
import { type ActivateInput, activateCron, listCrons, runCron } from './crons.ts'

const tick = functionManifest('a.tick', { kind: 'mutation', visibility: 'internal', clients: [] })
const cron = (name: string, more: Partial<CronManifest> = {}): CronManifest => ({
  // A leap day: nothing is due while a test runs.
  name,
  schedule: '0 0 29 2 *',
  timeZone: 'UTC',
  everyMillis: null,
  function: 'a.tick',
  arguments: {},
  overlap: 'skip',
  ...more,
})

let gateway: TestGateway
let runs = 0
/** The Crons; each test that changes one has its own. */
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const
let name: string
let count = 0

beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [tick],
    tables: [],
    crons: NAMES.map((each) => cron(each)),
    handlers: { 'a.tick': () => runs++ },
  })
  await settled()
})
beforeEach(() => {
  runs = 0
  name = NAMES[count++ % NAMES.length]!
})
afterAll(() => gateway.close())

const product = () => gateway.harness.product
const newOperation = () => gateway.harness.system.ids.make('opn')
const listed = async (target: string | null = null) => (await listCrons(product(), target)).crons
const namesInForce = async () => (await listed()).map((each) => each.name)
const itemOf = async (of: string) => (await listed()).find((each) => each.name === of)!
const clock = () => ({
  changedAtMicros: gateway.harness.system.nowMicros(),
  requestId: REQUEST_ID,
})

async function settled(): Promise<void> {
  await product().serving.whenIdle()
  await product().crons.whenIdle()
  await gateway.engine.scheduler.whenSettled()
}

const activation = (more: Partial<ActivateInput> = {}): ActivateInput => ({
  operationId: newOperation(),
  name,
  activation: 'disabled',
  expectedRevision: 0n,
  ...clock(),
  ...more,
})
const activate = (input: ActivateInput) => activateCron(product(), gateway.harness.actor, input)
const run = (operationId: OperationId, of = name) =>
  runCron(product(), gateway.harness.actor, { operationId, name: of, requestId: REQUEST_ID })

function lifecycle(verb: 'archive' | 'restore'): void {
  const expectedRevision = BigInt(readEnvironment(product()).desired.revision)
  const input = { operationId: newOperation(), change: { verb, expectedRevision }, ...clock() }
  changeEnvironment(product(), gateway.harness.actor, input)
}

function publishing(crons: readonly CronManifest[], source: string) {
  return publishRelease(gateway.harness, { functions: [tick], crons, source })
}

const bind = (releaseId: ReleaseId, expectedReleaseId: ReleaseId) =>
  bindChannel(gateway.harness, releaseId, { expectedReleaseId })

describe('an activation', () => {
  test('an activation needs the exact revision, and one of two at once succeeds', async () => {
    const outcomes = await Promise.allSettled([activate(activation()), activate(activation())])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(activate(activation())).rejects.toMatchObject({ code: 'PRODUCT_CAS_CONFLICT' })
    expect(await itemOf(name)).toMatchObject({ activation: 'disabled', revision: '1' })
  })

  test('a repeated activation returns the first result, even after later changes', async () => {
    const input = activation()
    const first = await activate(input)
    await activate(activation({ expectedRevision: 1n, activation: 'enabled' }))
    const again = await activate(input)
    expect(again.result).toEqual(first.result)
    expect(again.operation).toEqual({ ...first.operation, replayed: true })
    expect(findApplied(product(), 'cron', input.operationId)).toMatchObject({
      kind: 'cron.disable',
      revision: 1n,
    })
    await expect(activate({ ...input, name: 'other' })).rejects.toMatchObject({
      code: 'PRODUCT_OPERATION_REUSED',
    })
    expect(await itemOf(name)).toMatchObject({ activation: 'enabled', revision: '2' })
  })

  test('a Cron that is not in force is not found by an activation', async () => {
    await expect(activate(activation({ name: 'absent' }))).rejects.toMatchObject({
      code: 'PRODUCT_NOT_FOUND',
    })
  })

  test('a disabled Cron has no next time, and an enabled one has one', async () => {
    const { result } = await activate(activation())
    expect(result).toMatchObject({ activation: 'disabled', revision: '1', nextRunAtMicros: null })
    expect((await itemOf(name)).nextRunAtMicros).toBeNull()
    await activate(activation({ expectedRevision: 1n, activation: 'enabled' }))
    await settled()
    const { nextRunAtMicros } = await itemOf(name)
    expect(new Date(Number(nextRunAtMicros) / 1_000).toISOString()).toMatch(/-02-29T00:00:00/)
  })
})

describe('a manual run', () => {
  test('a manual run is scheduled once for its Operation ID, and is the last run', async () => {
    const operationId = newOperation()
    const [first, second] = await Promise.all([run(operationId), run(operationId)])
    expect(second.result.scheduledId).toBe(first.result.scheduledId)
    await settled()
    const again = await run(operationId)
    expect(again).toMatchObject({ result: first.result, operation: { replayed: true } })
    expect(runs).toBe(1)
    expect(findApplied(product(), 'cron', operationId)).toMatchObject({ kind: 'cron.run' })
    await expect(run(operationId, 'other')).rejects.toMatchObject({
      code: 'PRODUCT_OPERATION_REUSED',
    })
    expect((await itemOf(name)).lastRunAtMicros).toMatch(/^\d+$/)
  })

  test('a manual run starts at once when the Environment serves again', async () => {
    lifecycle('archive')
    await run(newOperation())
    await settled()
    expect(runs).toBe(0)
    lifecycle('restore')
    // The scheduler would look at the clock only a minute later.
    await expect.poll(() => runs).toBe(1)
    await settled()
  })
})

test('a cancellation is stored with its Operation ID, and a repeat gets its result', async () => {
  lifecycle('archive')
  const { result } = await run(newOperation())
  const operationId = newOperation()
  const cancel = (scheduledId: string = result.scheduledId, id = operationId) =>
    cancelScheduled(product(), gateway.harness.actor, {
      scheduledId,
      operationId: id,
      requestId: REQUEST_ID,
    })
  const first = await cancel()
  expect(first).toMatchObject({
    result: { state: 'canceled' },
    operation: { kind: 'schedule.cancel' },
  })
  const operation = { ...first.operation, replayed: true }
  expect(await cancel()).toEqual({ result: first.result, operation })
  const other = 'sch_01MCC5RM00440WAKYHT0DB49BM'
  await expect(cancel(other)).rejects.toMatchObject({ code: 'PRODUCT_OPERATION_REUSED' })
  await expect(cancel(other, newOperation())).rejects.toMatchObject({ code: 'PRODUCT_NOT_FOUND' })
  lifecycle('restore')
  await settled()
})

test('ended work is not canceled, and a second cancellation changes nothing', async () => {
  const cancel = (scheduledId: string) =>
    cancelScheduled(product(), gateway.harness.actor, {
      scheduledId,
      operationId: newOperation(),
      requestId: REQUEST_ID,
    })
  const ended = (await run(newOperation())).result
  await settled()
  await expect(cancel(ended.scheduledId)).rejects.toMatchObject({
    code: 'PRODUCT_STATE_CONFLICT',
    detail: `${ended.scheduledId} is failed`,
  })
  lifecycle('archive')
  const { result } = await run(newOperation())
  const first = await cancel(result.scheduledId)
  expect((await cancel(result.scheduledId)).result).toEqual(first.result)
  lifecycle('restore')
  await settled()
  expect(runs).toBe(1)
})

describe('Crons in force', () => {
  test('only the Crons in force of an active Environment have a next run', async () => {
    const of = 'g'
    expect((await itemOf(of)).nextRunAtMicros).toMatch(/^\d+$/)
    const other = await publishing([cron(of)], 'idle')
    expect((await listed(`release:${other.releaseId}`))[0]!.nextRunAtMicros).toBeNull()
    lifecycle('archive')
    expect((await itemOf(of)).nextRunAtMicros).toBeNull()
    lifecycle('restore')
    await settled()
  })

  test('the Crons of Channel production are in force, and their work keeps a Release', async () => {
    expect(await namesInForce()).toEqual(NAMES)
    lifecycle('archive')
    await run(newOperation(), 'h')
    await activate(activation({ name: 'h' }))
    const changed = cron('h', { schedule: '0 0 1 1 *', overlap: 'queue' })
    const next = await publishing([changed], 'second')
    bind(next.releaseId, gateway.releaseId)
    const retiring = { releaseId: gateway.releaseId, requestId: REQUEST_ID }
    expect(() => retire(product(), gateway.harness.actor, retiring)).toThrow(
      expect.objectContaining({ code: 'PRODUCT_STATE_CONFLICT' }),
    )
    lifecycle('restore')
    await settled()
    expect(runs).toBe(1)
    // The activation of the Cron also applies to another declaration of it.
    expect(await listed()).toMatchObject([
      { name: 'h', schedule: '0 0 1 1 *', activation: 'disabled', revision: '1' },
    ])
    retire(product(), gateway.harness.actor, retiring)
  })

  test('the Crons of the greatest weight are in force, and the ID decides ties', async () => {
    const set = async (weights: readonly (readonly [ReleaseId, number])[], revision: bigint) => {
      const releases = weights.map(([releaseId, weight]) => ({ releaseId, weight }))
      const input = { operationId: newOperation(), expectedRevision: revision, ...clock() }
      const { actor } = gateway.harness
      await setServingPolicy(product(), actor, { ...input, mode: 'weighted', releases })
      await settled()
    }
    const [third, fourth] = [
      (await publishing([cron('third')], 'third')).releaseId,
      (await publishing([cron('fourth')], 'fourth')).releaseId,
    ]
    await set([[third, 4_000] as const, [fourth, 6_000] as const], 0n)
    expect(await namesInForce()).toEqual(['fourth'])
    await set([[third, 5_000] as const, [fourth, 5_000] as const], 1n)
    expect(await namesInForce()).toEqual(['third'])
  })

  test('no Cron is in force before the first promotion', async () => {
    const harness = await openTestProduct()
    await expect(listCrons(harness.product, null)).rejects.toMatchObject({
      code: 'PRODUCT_NOT_FOUND',
    })
    await harness.close()
  })
})

test('an activation is kept across a restart', async () => {
  await activate(activation({ name: 'third' }))
  const { directory } = gateway.harness
  const other = await openTestProduct({ directory: copyOf(directory) })
  expect((await listCrons(other.product, null)).crons).toMatchObject([
    { name: 'third', activation: 'disabled', revision: '1' },
  ])
  await closeProduct(other.product)
})

/** Copies the Product root of an open Product, which holds its lock. */
function copyOf(directory: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'svc-crons-'))
  onTestFinished(() => rmSync(copy, { recursive: true }))
  cpSync(directory, copy, { recursive: true })
  return copy
}

/** Migrations of a Product: actions of operators, what a Release requires, and what is in use. */
import { afterEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import {
  migrationHandler,
  migrationManifest,
} from '../../../testing/migrations/in-process-migrations.ts'
import {
  functionManifest,
  publishRelease,
  REQUEST_ID,
  type WorkspaceInput,
} from '../../../testing/products.ts'
import { bindChannel, retireRelease } from '../../../testing/releases.ts'
import type { Fault } from '../../errors/fault.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import type { OperationId, ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { rollback } from '../channels/rollback.ts'
import { findApplied } from '../idempotency/idempotency-records.ts'
import { setServingPolicy } from '../serving/serving-policy.ts'
import { type ActInput, actOnMigration, listMigrations, previewMigration } from './migrations.ts'

const TASKS: TableManifest = {
  name: 'tasks',
  fields: { level: { type: 'optional', inner: { type: 'string' } } },
  indexes: [],
}
const fill = functionManifest('a.fill', { kind: 'mutation' })
const WORKSPACE: WorkspaceInput = {
  functions: [fill],
  tables: [TASKS],
  migrations: [migrationManifest('add'), migrationManifest('fail'), migrationManifest('other')],
}

let gateway: TestGateway
let isFailing = true
afterEach(() => gateway.close())

async function open(input: WorkspaceInput = WORKSPACE): Promise<void> {
  isFailing = true
  gateway = await openTestGateway({
    ...input,
    functions: [fill],
    tables: [...input.tables!],
    handlers: {
      'a.fill': async (ctx) => {
        for (let i = 0; i < 12; i++) await ctx.insert('tasks', {})
      },
      ...migrationHandler('add', () => ({ level: 'low' })),
      ...migrationHandler('other', () => null),
      ...migrationHandler('fail', () => ({ level: isFailing ? 5 : 'low' })),
    },
  })
  const { product } = gateway.harness
  const release = await product.releases.load(gateway.releaseId)
  const context = { requestId: 'req_test', invocationId: 'ivc_test' }
  const call = { definition: fill, arguments: new Map(), principal: null, context }
  const operation = { operationId: newOperation(), target: 'test', caller: 'test' }
  await gateway.engine.mutation({ ...call, ...operation, release })
}

const newOperation = () => gateway.harness.system.ids.make('opn')
const product = () => gateway.harness.product

function act(action: ActInput['action'], name: string, more: Partial<ActInput> = {}) {
  return actOnMigration(product(), gateway.harness.actor, {
    name,
    action,
    releaseId: gateway.releaseId,
    operationId: newOperation(),
    changedAtMicros: gateway.harness.system.nowMicros(),
    requestId: REQUEST_ID,
    ...more,
  })
}

function until(...states: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    gateway.engine.migrations.listen(({ state }) => {
      if (states.includes(state)) resolve()
    })
  })
}

async function completed(name: string, more: Partial<ActInput> = {}): Promise<void> {
  const done = until('complete', 'blocked')
  await act('run', name, more)
  await done
}

async function stateOf(name: string, releaseId: ReleaseId | null = null) {
  const { migrations } = await listMigrations(product(), releaseId)
  return migrations.find((each) => each.name === name)!
}

async function rejection(action: () => Promise<unknown>): Promise<Fault> {
  return action().then(
    () => Promise.reject(new Error('it succeeded')),
    (error: Fault) => error,
  )
}

describe('an operator', () => {
  test('runs a migration, whose progress the list of its Release has', async () => {
    await open()
    expect(await stateOf('add')).toMatchObject({ state: 'pending', processed: '0' })
    const operationId = newOperation()
    const done = until('complete')
    const { result } = await act('run', 'add', { operationId })
    expect(result).toMatchObject({ state: 'running', startedAtMicros: expect.any(String) })
    await done
    expect(await stateOf('add', gateway.releaseId)).toMatchObject({
      state: 'complete',
      table: 'tasks',
      releaseId: gateway.releaseId,
      processed: '12',
      changed: '12',
      failed: '0',
      finishedAtMicros: expect.any(String),
    })
    expect(findApplied(product(), 'migration', operationId).kind).toBe('migration.run')
    await product().audit.whenIdle()
    expect(gateway.harness.audited).toContainEqual(
      expect.objectContaining({ operation: 'product.migration.run', subject: 'add' }),
    )
  })

  test('gets the first result for an exact repeat, also after the migration went on', {
    tags: ['slow'],
  }, async () => {
    await open()
    const operationId = newOperation()
    const request = { operationId, changedAtMicros: gateway.harness.system.nowMicros() }
    const done = until('complete')
    const first = await act('run', 'add', request)
    await done
    const again = await act('run', 'add', request)
    expect(again).toMatchObject({ result: first.result, operation: { replayed: true } })
    const reused = await rejection(() => act('pause', 'add', request))
    expect(reused.code).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('resumes what a document stopped, and cannot change what is complete', {
    tags: ['slow'],
  }, async () => {
    await open()
    await completed('fail')
    expect(await stateOf('fail')).toMatchObject({
      state: 'blocked',
      failed: '1',
      lastErrorCode: 'FUNCTION_FAILED',
      lastDocumentId: expect.stringMatching(/^tasks_/),
    })
    expect((await rejection(() => act('run', 'fail'))).code).toBe('PRODUCT_STATE_CONFLICT')
    isFailing = false
    const done = until('complete')
    await act('resume', 'fail')
    await done
    expect(await stateOf('fail')).toMatchObject({ state: 'complete', changed: '12' })
    for (const action of ['pause', 'resume', 'cancel'] as const) {
      expect((await rejection(() => act(action, 'fail'))).code).toBe('PRODUCT_STATE_CONFLICT')
    }
  })

  test('runs what was canceled from the beginning, but cannot resume it', {
    tags: ['slow'],
  }, async () => {
    await open()
    await completed('fail')
    await act('cancel', 'fail')
    expect((await rejection(() => act('resume', 'fail'))).code).toBe('PRODUCT_STATE_CONFLICT')
    isFailing = false
    await completed('fail')
    expect(await stateOf('fail')).toMatchObject({ state: 'complete', processed: '12', failed: '0' })
  })

  test('gets the reason for an unknown migration, Release and state', async () => {
    await open()
    const { ids } = gateway.harness.system
    expect((await rejection(() => act('run', 'unknown'))).code).toBe('PRODUCT_NOT_FOUND')
    const other = { releaseId: ids.make('rel') }
    expect((await rejection(() => act('run', 'add', other))).code).toBe('PRODUCT_NOT_FOUND')
    const conflict = await rejection(() => act('pause', 'add'))
    expect(conflict.violations).toEqual([
      { path: 'action', rule: 'an action for a migration that is pending' },
    ])
    const late = { changedAtMicros: 1n }
    expect((await rejection(() => act('run', 'add', late))).code).toBe('PRODUCT_INVALID')
    expect(await stateOf('add')).toMatchObject({ state: 'pending' })
  })

  test('sees documents before and after in a dry run, which stores nothing', {
    tags: ['slow'],
  }, async () => {
    await open()
    const named = { name: 'add', releaseId: gateway.releaseId }
    const { item, documents } = await previewMigration(product(), named)
    expect(item.state).toBe('pending')
    expect(documents).toHaveLength(10)
    expect(documents[0]).toMatchObject({
      before: { type: 'object', value: [] },
      after: { type: 'object', value: [{ key: 'level', value: { type: 'string', value: 'low' } }] },
      error: null,
    })
    const failed = await previewMigration(product(), { ...named, name: 'fail' })
    expect(failed.documents).toMatchObject([{ after: null, error: { code: 'FUNCTION_FAILED' } }])
    expect(await stateOf('add')).toMatchObject({ state: 'pending' })
  })
})

test('a migration cannot run while a bound Release could not read what it writes', {
  tags: ['slow'],
}, async () => {
  await open()
  const narrow = { ...TASKS, fields: { level: { type: 'int64' } as const } }
  const published = await publishRelease(gateway.harness, {
    ...WORKSPACE,
    tables: [{ ...narrow, fields: { level: { type: 'optional', inner: narrow.fields.level } } }],
  })
  const fault = await rejection(() => act('run', 'add', published))
  expect(fault.code).toBe('PRODUCT_INCOMPATIBLE')
  expect(fault.violations[0]!.rule).toContain(`readable by ${gateway.releaseId}`)
  expect(await stateOf('add')).toMatchObject({ state: 'pending' })
})

test('a migration runs beside a bound Release that lacks a field of the new one', {
  tags: ['slow'],
}, async () => {
  await open()
  const done = { type: 'optional', inner: { type: 'boolean' } } as const
  const { releaseId } = await publishRelease(gateway.harness, {
    ...WORKSPACE,
    source: 'next',
    tables: [{ ...TASKS, fields: { ...TASKS.fields, done } }],
    requires: ['add'],
  })
  await completed('add', { releaseId })
  expect(await stateOf('add', releaseId)).toMatchObject({ state: 'complete', changed: '12' })
  expect(await bindChannel(gateway.harness, releaseId)).toMatchObject({ releaseId })
})

test('a Release that cannot be validated before its migration can run it', {
  tags: ['slow'],
}, async () => {
  await open()
  const input = { ...WORKSPACE, validate: false, source: 'second' }
  const { releaseId } = await publishRelease(gateway.harness, input)
  const { functions, tables } = input
  gateway.harness.engine.describe = async () => ({ functions, tables }) as never
  const fault = await rejection(() => act('run', 'add', { releaseId }))
  expect(fault.violations).toMatchObject([{ path: 'checks.code:migrations' }])
  const { migrations } = input
  gateway.harness.engine.describe = async () => ({ functions, tables, migrations }) as never
  await completed('add', { releaseId })
  expect(await stateOf('add', releaseId)).toMatchObject({ state: 'complete', releaseId })
})

test('a validation whose documents do not fit names the migration that it requires', {
  tags: ['slow'],
}, async () => {
  await open()
  const level = { type: 'string' } as const
  gateway.harness.engine.documents.set('tasks', [new Map()])
  const published = publishRelease(gateway.harness, {
    ...WORKSPACE,
    tables: [{ ...TASKS, fields: { level } }],
    requires: ['add'],
  })
  const fault = await rejection(() => published)
  expect(fault.violations.map(({ path }) => path)).toEqual([
    expect.stringMatching(/^checks\.documents/),
    'checks.migrations',
  ])
  expect(fault.violations[1]!.rule).toContain('svc migrations run add --release rel_')
})

describe('requires', () => {
  const requiring = (names: readonly string[]) =>
    publishRelease(gateway.harness, { ...WORKSPACE, source: 'next', requires: names })

  test('a Channel is bound once all are complete, and the fault is the command', {
    tags: ['slow'],
  }, async () => {
    await open()
    const { releaseId } = await requiring(['add', 'other'])
    const fault = await rejection(() => bindChannel(gateway.harness, releaseId))
    expect(fault.code).toBe('PRODUCT_INCOMPATIBLE')
    const command = (name: string) => `svc migrations run ${name} --release ${releaseId}`
    expect(fault.violations).toEqual(
      ['add', 'other'].map((name) => ({
        path: 'releaseId',
        rule: `after the migration ${name} is complete: ${command(name)}`,
      })),
    )
    await completed('add', { releaseId })
    const left = await rejection(() => bindChannel(gateway.harness, releaseId))
    expect(left.violations).toHaveLength(1)
    await completed('other', { releaseId })
    expect(await bindChannel(gateway.harness, releaseId)).toMatchObject({ releaseId })
  })

  test('the same migration of an earlier Release counts, a changed one does not', {
    tags: ['slow'],
  }, async () => {
    await open()
    await completed('add')
    const { releaseId } = await requiring(['add'])
    expect(await bindChannel(gateway.harness, releaseId)).toMatchObject({ releaseId })
    const changed = migrationManifest('add', { digest: `sha256:${'f'.repeat(64)}` })
    const next = await publishRelease(gateway.harness, {
      ...WORKSPACE,
      source: 'changed',
      migrations: [changed],
      requires: ['add'],
    })
    const fault = await rejection(() => bindChannel(gateway.harness, next.releaseId))
    expect(fault.code).toBe('PRODUCT_INCOMPATIBLE')
  })

  test('the list may name a migration that only an earlier Release has', {
    tags: ['slow'],
  }, async () => {
    await open()
    const without = { ...WORKSPACE, source: 'next', migrations: [], requires: ['add'] }
    const { migrations: _, ...input } = without
    const { releaseId } = await publishRelease(gateway.harness, input)
    const fault = await rejection(() => bindChannel(gateway.harness, releaseId))
    expect(fault.violations[0]!.rule).toContain('with the Release that has it')
    await completed('add')
    expect(await bindChannel(gateway.harness, releaseId)).toMatchObject({ releaseId })
  })

  test('a rollback and a policy need the migrations too', { tags: ['slow'] }, async () => {
    await open()
    await completed('add')
    const { releaseId } = await requiring(['add'])
    await bindChannel(gateway.harness, releaseId)
    await bindChannel(gateway.harness, gateway.releaseId)
    // The record of the migration is what decides, and here it is gone.
    const { engine, actor, system } = gateway.harness
    engine.migrations = { ...engine.migrations, isComplete: async () => false }
    const [target, expected] = [releaseId, gateway.releaseId]
    const back = await rejection(() =>
      rollback(product(), actor, {
        channel: 'production',
        targetReleaseId: target,
        expectedReleaseId: expected,
        requestId: REQUEST_ID,
      }),
    )
    const policy = await rejection(() =>
      setServingPolicy(product(), actor, {
        operationId: newOperation() as OperationId,
        expectedRevision: 0n,
        mode: 'atomic',
        releases: [{ releaseId, weight: 10_000 }],
        changedAtMicros: system.nowMicros(),
        requestId: REQUEST_ID,
      }),
    )
    expect([back.code, policy.code]).toEqual(['PRODUCT_INCOMPATIBLE', 'PRODUCT_INCOMPATIBLE'])
  })
})

test('a Release is not retired while one of its migrations is unfinished', {
  tags: ['slow'],
}, async () => {
  await open()
  const { releaseId } = await publishRelease(gateway.harness, { ...WORKSPACE, source: 'next' })
  await completed('fail', { releaseId })
  const fault = await rejection(async () => retireRelease(gateway.harness, releaseId))
  expect(fault.violations).toEqual([
    { path: 'releaseId', rule: 'not the Release of 1 unfinished migrations' },
  ])
  await act('cancel', 'fail', { releaseId })
  retireRelease(gateway.harness, releaseId)
  const retired = await rejection(() => act('run', 'add', { releaseId }))
  expect(retired.code).toBe('PRODUCT_RELEASE_RETIRED')
})

test('a migration waits while the Environment is archived', { tags: ['slow'] }, async () => {
  await open()
  const environment = product().root.control.read(findEnvironment)!
  const archive = product().lifecycle
  archive.follow({ ...environment, lifecycle: 'archived' })
  await act('run', 'add')
  await gateway.engine.migrations.whenIdle()
  expect(await stateOf('add')).toMatchObject({ state: 'running', processed: '0' })
  const done = until('complete')
  archive.follow({ ...environment, lifecycle: 'active' })
  await done
  expect(await stateOf('add')).toMatchObject({ processed: '12' })
})

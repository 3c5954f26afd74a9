import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  functionManifest,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
  type WorkspaceInput,
} from '../../../testing/products.ts'
import { bindChannel, releaseState } from '../../../testing/releases.ts'
import { Fault } from '../../errors/fault.ts'
import type { CronManifest, TableManifest } from '../../value/manifest.ts'
import type { Json } from '../../value/strict-json.ts'
import type { Published } from '../workspaces/publish.ts'
import { validate } from './validate.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const LIST = functionManifest('messages.list')
const MESSAGES: TableManifest = {
  name: 'messages',
  fields: { body: { type: 'string' } },
  indexes: [{ name: 'byBody', fields: ['body'], unique: false }],
}
const SWEEP: CronManifest = {
  name: 'sweep',
  schedule: null,
  timeZone: null,
  everyMillis: 60_000,
  function: 'messages.sweep',
  arguments: {},
  overlap: 'skip',
}
const SWEPT = functionManifest('messages.sweep', { kind: 'mutation' })
const CHAT = { functions: [LIST], tables: [MESSAGES] }

function candidate(input: WorkspaceInput = CHAT): Promise<Published> {
  return publishRelease(harness, { ...input, validate: false })
}

/** Sets the description that the loaded code returns. */
function describeAs(description: object): void {
  harness.engine.describe = async () => description as Json
}

function check({ releaseId }: Pick<Published, 'releaseId'>, against: string | null = null) {
  return validate(harness.product, harness.actor, { releaseId, against, requestId: REQUEST_ID })
}

const stateOf = ({ releaseId }: Published) => releaseState(harness, releaseId)

describe('a validation', () => {
  test('a validation makes a Release servable, and its repeat needs no engine', async () => {
    const published = await candidate()
    describeAs(CHAT)
    const validated = await check(published)
    expect(validated).toEqual({
      releaseId: published.releaseId,
      state: 'validated',
      checks: [
        { name: 'load', outcome: 'passed', detail: 'the code loads' },
        { name: 'code:functions', outcome: 'passed', detail: '1 as declared' },
        { name: 'code:tables', outcome: 'passed', detail: '1 as declared' },
        { name: 'code:indexes', outcome: 'passed', detail: '1 as declared' },
        { name: 'code:crons', outcome: 'passed', detail: '0 as declared' },
        { name: 'indexes', outcome: 'passed', detail: '' },
        { name: 'documents:messages', outcome: 'passed', detail: '' },
      ],
      validatedAtMicros: harness.system.nowMicros(),
    })
    harness.system.advance(5_000)
    harness.engine.describe = async () => {
      throw new Fault('BUSY')
    }
    expect(await check(published)).toEqual(validated)
    await harness.product.audit.whenIdle()
    expect(harness.audited.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      'product.workspace.publish succeeded',
      'product.release.validate succeeded',
    ])
  })

  test.each<[string, object, string, string]>([
    ['lacks a Function', { ...CHAT, functions: [] }, 'code:functions', 'messages.list'],
    [
      'has another Function',
      { ...CHAT, functions: [LIST, functionManifest('secrets.read')] },
      'code:functions',
      'secrets.read',
    ],
    [
      'opens a Function to more clients',
      { ...CHAT, functions: [{ ...LIST, clients: ['confidential', 'public'] }] },
      'code:functions',
      'messages.list',
    ],
    [
      'has other fields',
      { ...CHAT, tables: [{ ...MESSAGES, fields: { body: { type: 'any' } } }] },
      'code:tables',
      'messages',
    ],
    [
      'lacks an index',
      { ...CHAT, tables: [{ ...MESSAGES, indexes: [] }] },
      'code:indexes',
      'byBody',
    ],
    ['describes itself with an unknown field', { ...CHAT, jobs: [] }, 'load', '$.jobs'],
    ['describes no Functions at all', { tables: [] }, 'load', '$.functions'],
  ])(
    'a validation permanently rejects a Release whose code %s',
    async (_, description, name, detail) => {
      const published = await candidate()
      describeAs(description)
      const failure = {
        code: 'PRODUCT_INCOMPATIBLE',
        violations: [{ path: `checks.${name}`, rule: expect.stringContaining(detail) }],
      }
      await expect(check(published)).rejects.toMatchObject(failure)
      expect(stateOf(published)).toBe('rejected')
      describeAs(CHAT)
      await expect(check(published)).rejects.toMatchObject(failure)
      await harness.product.audit.whenIdle()
      expect(harness.audited.at(-1)).toMatchObject({
        operation: 'product.release.validate',
        outcome: 'failed',
        subject: published.releaseId,
      })
    },
  )

  test.each([
    ['FUNCTION_FAILED', 'PRODUCT_INCOMPATIBLE', 'rejected'],
    ['LIMIT_EXCEEDED', 'PRODUCT_INCOMPATIBLE', 'rejected'],
    ['DEADLINE_EXCEEDED', 'PRODUCT_INCOMPATIBLE', 'published'],
    ['BUSY', 'PRODUCT_UNAVAILABLE', 'published'],
    ['UNAVAILABLE', 'PRODUCT_UNAVAILABLE', 'published'],
    ['INTERNAL', 'INTERNAL', 'published'],
  ] as const)(
    'a validation whose code fails with %s throws %s and leaves the Release %s',
    async (thrown, code, state) => {
      const published = await candidate()
      harness.engine.describe = async () => {
        throw new Fault(thrown)
      }
      await expect(check(published)).rejects.toMatchObject({ code })
      expect(stateOf(published)).toBe(state)
    },
  )

  test('a Release whose code declares another Cron than its manifest is rejected', async () => {
    const functions = [LIST, SWEPT]
    const published = await candidate({ functions, tables: [MESSAGES], crons: [SWEEP] })
    describeAs({ functions, tables: [MESSAGES], crons: [{ ...SWEEP, overlap: 'queue' }] })
    await expect(check(published)).rejects.toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [{ path: 'checks.code:crons', rule: expect.stringContaining('sweep') }],
    })
  })

  test('a validation reports the error that the code threw when it was loaded', async () => {
    const published = await candidate()
    harness.engine.describe = async () => {
      const rule = `TypeError: ${'x'.repeat(1_000)}`
      throw new Fault('FUNCTION_FAILED', { violations: [{ path: 'code', rule }] })
    }
    await expect(check(published)).rejects.toMatchObject({
      violations: [{ path: 'checks.load', rule: `TypeError: ${'x'.repeat(489)}` }],
    })
  })

  test.each([
    ['FUNCTION_FAILED', 'PRODUCT_INCOMPATIBLE'],
    ['DEADLINE_EXCEEDED', 'PRODUCT_INCOMPATIBLE'],
    ['UNAVAILABLE', 'PRODUCT_UNAVAILABLE'],
  ] as const)(
    'a validation whose preparation fails with %s throws %s and may be repeated',
    async (thrown, code) => {
      const published = await candidate()
      describeAs(CHAT)
      harness.engine.prepare = async () => {
        throw new Fault(thrown)
      }
      await expect(check(published)).rejects.toMatchObject({ code })
      expect(stateOf(published)).toBe('published')
    },
  )

  test('a validation that fails for stored documents does not reject the Release', async () => {
    const published = await candidate()
    describeAs(CHAT)
    harness.engine.documents.set('messages', [new Map([['body', 1n]])])
    const rule = expect.stringMatching(/^1 stored documents do not fit .* messages_0 /)
    await expect(check(published)).rejects.toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [{ path: 'checks.documents:messages', rule }],
    })
    expect(stateOf(published)).toBe('published')
    harness.engine.documents.clear()
    expect(await check(published)).toMatchObject({ state: 'validated' })
  })

  test('a Release that documents of a Channel may not fit fails and stays published', async () => {
    const first = await publishRelease(harness, CHAT)
    await bindChannel(harness, first.releaseId)
    let prepared = 0
    const { prepare } = harness.engine
    harness.engine.prepare = (release) => {
      prepared += 1
      return prepare(release)
    }
    const narrower = {
      ...CHAT,
      tables: [
        { ...MESSAGES, fields: { ...MESSAGES.fields, author: { type: 'string' } as const } },
      ],
    }
    const second = await candidate(narrower)
    describeAs(narrower)
    await expect(check(second, 'production')).rejects.toMatchObject({
      code: 'PRODUCT_INCOMPATIBLE',
      violations: [
        {
          path: 'checks.against:documents',
          rule:
            'messages.author: the required field is added; for example {"body":""}; declare it ' +
            'with v.optional(...).default(...), which both Releases can read',
        },
      ],
    })
    expect(stateOf(second)).toBe('published')
    expect(prepared).toBe(0)
    const third = await candidate({ functions: [LIST] })
    describeAs({ functions: [LIST], tables: [] })
    await expect(check(third, 'production')).rejects.toMatchObject({
      violations: [{ path: 'checks.against:tables', rule: 'removed: messages' }],
    })
    const fourth = await candidate(CHAT)
    describeAs(CHAT)
    const validated = await check(fourth, 'production')
    expect(validated.checks.map(({ name }) => name).slice(-2)).toEqual([
      'against:tables',
      'against:documents',
    ])
    expect(await check(fourth, 'production')).toEqual(validated)
  })

  test('a validation of an unknown Release or against an unbound Channel is rejected', async () => {
    const published = await candidate()
    describeAs(CHAT)
    const releaseId = harness.system.ids.make('rel')
    await expect(check({ releaseId })).rejects.toMatchObject({ code: 'PRODUCT_NOT_FOUND' })
    await expect(check(published, 'production')).rejects.toMatchObject({
      code: 'PRODUCT_NOT_FOUND',
    })
    expect(stateOf(published)).toBe('published')
  })

  test('a validation runs alone while up to 15 others wait, and the 17th is rejected', async () => {
    const published = await candidate()
    let running = 0
    let runningMax = 0
    harness.engine.describe = async () => {
      runningMax = Math.max(runningMax, ++running)
      await Bun.sleep(5)
      running -= 1
      return CHAT as unknown as Json
    }
    const outcomes = await Promise.allSettled(Array.from({ length: 17 }, () => check(published)))
    expect(runningMax).toBe(1)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(16)
    expect(outcomes[16]).toMatchObject({ reason: { code: 'PRODUCT_UNAVAILABLE' } })
  })
})

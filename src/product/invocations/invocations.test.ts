import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { rejectionCode } from '../../../testing/identity.ts'
import { actorWith, functionManifest } from '../../../testing/products.ts'
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { OperationId } from '../../value/ids.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ValueObject } from '../../value/values.ts'
import { type InvocationInput, invokeFunction, OPERATOR_INVOCATIONS_MAX } from './invocations.ts'

const declared = (name: string, more: Partial<FunctionManifest> = {}): FunctionManifest =>
  functionManifest(name, {
    clients: ['confidential'],
    arguments: { body: { type: 'string' } },
    returns: { type: 'null' },
    ...more,
  })

const FUNCTIONS = [
  declared('notes.add', { kind: 'mutation' }),
  declared('notes.hidden', { kind: 'mutation', visibility: 'internal', clients: [] }),
  declared('notes.list'),
  declared('notes.maybe', { auth: 'optional' }),
  declared('notes.mine', { auth: 'user' }),
  declared('notes.send', { kind: 'action', uses: { network: [], secrets: [] } }),
]

let gateway: TestGateway
let actor: Actor
let runs: string[]
/** The identities that Functions saw, as JSON. */
let identities: Set<string>
let fails: Error | null

beforeEach(async () => {
  runs = []
  identities = new Set()
  fails = null
  const run =
    (name: string): TestHandler =>
    (_context, _input, { identityText }) => {
      runs.push(name)
      identities.add(identityText)
      if (fails !== null) throw fails
      return null
    }
  const handlers = Object.fromEntries(FUNCTIONS.map(({ name }) => [name, run(name)]))
  gateway = await openTestGateway({ functions: FUNCTIONS, tables: [], handlers })
  actor = actorWith(['functions:invoke', 'data:write'])
})

afterEach(() => gateway.close())

const SECRET = 'an argument that no record has'

function invoke(name: string, given: Partial<InvocationInput> = {}, by = actor) {
  return invokeFunction(gateway.harness.product, by, {
    target: 'channel:production',
    function: name,
    arguments: new Map([['body', SECRET]]) as unknown as ValueObject,
    operationId: null,
    requestId: gateway.harness.system.ids.make('req'),
    signal: { aborted: false },
    ...given,
  })
}

async function audits() {
  await gateway.harness.product.audit.whenIdle()
  expect(JSON.stringify(gateway.harness.audited, (_, v) => String(v))).not.toContain(SECRET)
  return gateway.harness.audited
    .filter(({ operation }) => operation.startsWith('product.function.'))
    .map(({ operation, outcome, subject }) => [operation.slice(17), outcome, subject])
}

describe('a Function that an operator runs', () => {
  test('a Function of each kind runs without an identity, whatever keys it is for', async () => {
    for (const [name, kind] of [
      ['notes.list', 'query'],
      ['notes.maybe', 'query'],
      ['notes.add', 'mutation'],
      ['notes.send', 'action'],
    ]) {
      const invoked = await invoke(name!)
      expect(invoked).toMatchObject({ kind, releaseId: gateway.releaseId })
      expect(invoked.outcome.resultText).toBe('{"type":"null"}')
    }
    expect(runs).toEqual(['notes.list', 'notes.maybe', 'notes.add', 'notes.send'])
    expect([...identities]).toEqual(['null'])
  })

  test('each run is audited with Function, target and outcome, and no argument', async () => {
    await invoke('notes.list')
    await invoke('notes.add')
    await invoke('notes.send')
    fails = new TypeError('broken')
    for (const name of ['notes.list', 'notes.add', 'notes.send']) {
      expect(await rejectionCode(invoke(name, { arguments: bodyOf(`${name} again`) }))).toBe(
        'FUNCTION_FAILED',
      )
    }
    expect(await audits()).toEqual([
      ['invoke', 'succeeded', 'notes.list channel:production'],
      ['invoke', 'succeeded', 'notes.add channel:production'],
      ['start', 'succeeded', 'notes.send channel:production'],
      ['invoke', 'succeeded', 'notes.send channel:production'],
      ['invoke', 'failed', 'notes.list channel:production'],
      ['invoke', 'failed', 'notes.add channel:production'],
      ['start', 'succeeded', 'notes.send channel:production'],
      ['invoke', 'failed', 'notes.send channel:production'],
    ])
    for (const record of gateway.harness.audited.slice(-4)) {
      expect(record).toMatchObject({ actor: actor.operatorId, sessionId: actor.sessionId })
    }
  })

  test('the record of a derived session names its purpose', async () => {
    await invoke('notes.add', {}, { ...actor, purpose: 'mcp' })
    await gateway.harness.product.audit.whenIdle()
    expect(gateway.harness.audited.at(-1)).toMatchObject({ purpose: 'mcp' })
  })

  test('a Function that requires an identity rejects an operator, and does not run', async () => {
    expect(await rejectionCode(invoke('notes.mine'))).toBe('AUTH_POLICY_DENIED')
    expect(runs).toEqual([])
    expect(await audits()).toEqual([])
  })

  test('an internal Function requires data:write too', { tags: ['slow'] }, async () => {
    const invoker = actorWith(['functions:invoke'])
    expect(await rejectionCode(invoke('notes.hidden', {}, invoker))).toBe('PLATFORM_ACCESS_DENIED')
    expect(runs).toEqual([])
    await invoke('notes.hidden')
    expect(runs).toEqual(['notes.hidden'])
  })

  test('what does not exist, and arguments and IDs that do not fit, are rejected', async () => {
    const operationId = gateway.harness.system.ids.make('opn')
    const cases: readonly [string, Partial<InvocationInput>, string][] = [
      ['notes.list', { target: 'channel:none' }, 'TARGET_NOT_FOUND'],
      ['notes.list', { target: 'nothing' }, 'REQUEST_INVALID'],
      ['notes.none', {}, 'FUNCTION_NOT_FOUND'],
      ['..', {}, 'REQUEST_INVALID'],
      ['notes.list', { arguments: new Map() as ValueObject }, 'ARGUMENTS_INVALID'],
      ['notes.list', { operationId }, 'REQUEST_INVALID'],
      ['notes.send', { operationId }, 'REQUEST_INVALID'],
    ]
    for (const [name, given, code] of cases) {
      expect(await rejectionCode(invoke(name, given)), `${name} ${code}`).toBe(code)
    }
    expect(runs).toEqual([])
  })
})

const bodyOf = (text: string) => new Map([['body', text]]) as unknown as ValueObject

describe('the operation ID of a Mutation', () => {
  const newOperation = (): OperationId => gateway.harness.system.ids.make('opn')

  test('an exact repeat takes effect once, and is audited once', async () => {
    const operationId = newOperation()
    const first = await invoke('notes.add', { operationId })
    const second = await invoke('notes.add', { operationId })
    expect(first).toMatchObject({ operationId, outcome: { replayed: false } })
    expect(second).toMatchObject({ operationId, outcome: { replayed: true } })
    expect(runs).toEqual(['notes.add'])
    expect(await audits()).toHaveLength(1)
  })

  test('the server makes an operation ID where none is given', async () => {
    const invoked = await invoke('notes.add')
    expect(invoked).toMatchObject({ operationId: expect.stringMatching(/^opn_/) })
  })

  test('another request or another operator cannot use it', async () => {
    const operationId = newOperation()
    await invoke('notes.add', { operationId })
    const other = { operationId, arguments: bodyOf('other') }
    expect(await rejectionCode(invoke('notes.add', other))).toBe('OPERATION_REUSED')
    const colleague = actorWith(['functions:invoke'])
    expect(await rejectionCode(invoke('notes.add', { operationId }, colleague))).toBe(
      'OPERATION_REUSED',
    )
    expect(runs).toEqual(['notes.add'])
  })
})

test('a bounded number of Functions runs for operators at a time', async () => {
  const { engine } = gateway.harness
  const { promise, resolve } = Promise.withResolvers<never>()
  engine.query = () => promise
  const running = Array.from({ length: OPERATOR_INVOCATIONS_MAX }, () =>
    rejectionCode(invoke('notes.list')),
  )
  expect(await rejectionCode(invoke('notes.list'))).toBe('BUSY')
  resolve(Promise.reject(new Fault('DEADLINE_EXCEEDED')) as never)
  expect(new Set(await Promise.all(running))).toEqual(new Set(['DEADLINE_EXCEEDED']))
})

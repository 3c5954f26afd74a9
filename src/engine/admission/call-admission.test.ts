/** Admission of calls of an unprepared Release, over a store that replies when the test says so. */
import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import type { DocumentStore } from '../../documents/store.ts'
import type { Fault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import { FunctionFigures } from '../../telemetry/metrics/function-figures.ts'
import type { FunctionKind } from '../../value/manifest.ts'
import type { Committer } from '../commits/committer.ts'
import { beginInvocation, type InvocationInput } from '../invocations/invocation.ts'
import type { MutationRequest } from '../invocations/requests.ts'
import { CALL_WAIT_MILLIS_MAX } from '../limits.ts'
import { ActiveCalls } from '../releases/active-calls.ts'
import type { Release } from '../releases/executable-release.ts'
import { Preparations } from '../releases/preparations.ts'
import { type AdmissionPort, CallAdmission } from './call-admission.ts'

const KINDS = ['query', 'mutation', 'action'] as const

/** Each call returns how many milliseconds it has left when its Function starts. */
function bench() {
  let now = 1_000
  const system = { ...realSystem(), monotonicMillis: () => now }
  const reply = Promise.withResolvers<[]>()
  const ensureIndexes: DocumentStore['ensureIndexes'] = async (definitions) => {
    await reply.promise
    return definitions.map((definition, i) => ({ ...definition, id: i + 1, state: 'ready' }))
  }
  const store = { ensureIndexes } as Partial<DocumentStore> as DocumentStore
  const preparations = new Preparations(store, {} as Committer)
  const inFlight = new ActiveCalls()
  const invocationPort = { system, configuration: new TestConfiguration() }
  const invoke = async (input: InvocationInput) => {
    const { deadline } = beginInvocation(invocationPort, input, undefined)
    return Math.round(deadline - system.monotonicMillis())
  }
  const kinds = {
    queries: { invoke, find: () => null },
    mutations: { invoke },
    actions: { invoke },
  }
  const metrics = { functions: new FunctionFigures() }
  const port = { ...kinds, preparations, inFlight, system, metrics }
  const calls = new CallAdmission(port as unknown as AdmissionPort)
  const definition = (kind: FunctionKind) => ({
    name: kind,
    kind,
    arguments: {},
    returns: { type: 'any' },
  })
  const release = {
    releaseId: system.ids.make('rel'),
    tables: new Map(),
    functions: new Map(KINDS.map((kind) => [kind, definition(kind)])),
  } as unknown as Release
  return {
    reply,
    inFlight,
    preparations,
    release,
    skip: (millis: number) => {
      now += millis
    },
    call: (
      kind: FunctionKind,
      signal?: { readonly aborted: boolean },
      scheduledId?: string,
    ): Promise<unknown> => {
      const subject = { release, definition: definition(kind), arguments: new Map(), scheduledId }
      const request = { ...subject, context: { requestId: 'req', invocationId: 'ivc' }, signal }
      const outcome = Promise.resolve(calls[kind](request as unknown as MutationRequest))
      return outcome.catch(({ code, retryAfterSeconds }: Fault) =>
        retryAfterSeconds === undefined ? code : { code, retryAfterSeconds },
      )
    },
  }
}

test('the wait for a Release counts towards the deadline of a call', async () => {
  const { call, skip, reply, inFlight, preparations, release } = bench()
  const early = KINDS.map((kind) => call(kind))
  skip(6_000)
  const late = KINDS.map((kind) => call(kind))
  skip(4_000)
  expect(await Promise.all(early)).toEqual(KINDS.map(() => 'DEADLINE_EXCEEDED'))
  expect(inFlight.count).toBe(3)
  reply.resolve([])
  expect(await Promise.all(late)).toEqual(KINDS.map(() => 6_000))
  expect(preparations.find(release.releaseId)).not.toBeNull()
})

test('a call that would wait for too long is BUSY at once, and scheduled work waits', async () => {
  const { call, skip, reply } = bench()
  const kinds = ['query', 'mutation'] as const
  const admitted = kinds.flatMap((kind) => Array.from({ length: 20 }, () => call(kind)))
  skip(CALL_WAIT_MILLIS_MAX + 500)
  const busy = { code: 'BUSY', retryAfterSeconds: Math.ceil(CALL_WAIT_MILLIS_MAX / 1_000) + 1 }
  expect(await Promise.all([call('query'), call('mutation')])).toEqual([busy, busy])
  admitted.push(call('mutation', undefined, 'sch'), call('action'))
  reply.resolve([])
  const kept = 10_000 - (CALL_WAIT_MILLIS_MAX + 500)
  expect(await Promise.all(admitted)).toEqual([...Array(2 * 20).fill(kept), 10_000, 10_000])
  expect(await call('query')).toBe(10_000)
})

test('Mutations that wait hold up no Query', async () => {
  const { call, skip, reply } = bench()
  const mutations = Array.from({ length: 20 }, () => call('mutation'))
  skip(CALL_WAIT_MILLIS_MAX + 500)
  const query = call('query')
  reply.resolve([])
  expect(await query).toBe(10_000)
  await Promise.all(mutations)
})

test('a waiting Query or Action whose caller disconnects ends, a Mutation completes', async () => {
  const { call, reply } = bench()
  const signal = { aborted: false }
  const [query, mutation, action] = KINDS.map((kind) => call(kind, signal))
  const other = call('query')
  signal.aborted = true
  expect(await Promise.all([query, action])).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
  reply.resolve([])
  expect(Number(await mutation)).toBeGreaterThan(0)
  expect(Number(await other)).toBeGreaterThan(0)
})

test('a Release is retained until its preparation ends, even if no call waits for it', async () => {
  const { call, skip, reply, inFlight, release } = bench()
  const expired = call('query')
  skip(10_000)
  expect(await expired).toBe('DEADLINE_EXCEEDED')
  let drained = 0
  const isRetained = () => inFlight.retainOnly(new Map(), () => drained++).has(release.releaseId)
  expect(isRetained()).toBe(true)
  reply.reject(new Error('the store'))
  await inFlight.whenIdle()
  expect(drained).toBe(1)
  expect(isRetained()).toBe(false)
})

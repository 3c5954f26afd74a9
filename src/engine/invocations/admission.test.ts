/** Admission of calls whose Release is not prepared while its store replies when the test says. */
import { expect, test } from 'vitest'
import { TestConfiguration } from '../../../build/testing/configurations.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { realSystem } from '../../system/system.ts'
import type { FunctionKind } from '../../value/manifest.ts'
import type { Committer } from '../commits/committer.ts'
import type { MutationRequest } from '../engine.ts'
import { Preparations } from '../releases/preparations.ts'
import type { Release } from '../releases/release.ts'
import { ActiveCalls } from './active-calls.ts'
import { CallAdmission, type CallsPort } from './admission.ts'
import { beginInvocation, type InvocationInput, type InvocationPort } from './invocations.ts'

const KINDS = ['query', 'mutation', 'action'] as const

/** Each call answers how many milliseconds it has left when its Function begins. */
function bench() {
  const real = realSystem()
  let skipped = 0
  const system = { ...real, monotonicMillis: () => real.monotonicMillis() + skipped }
  const answer = Promise.withResolvers<[]>()
  const store = { ensureIndexes: () => answer.promise } as Partial<DocumentStore> as DocumentStore
  const preparations = new Preparations(store, {} as Committer)
  const inFlight = new ActiveCalls()
  const world = { system, configuration: new TestConfiguration() } as Partial<InvocationPort>
  const invoke = async (input: InvocationInput) => {
    const { deadline } = beginInvocation(world as InvocationPort, input, undefined)
    return Math.round(deadline - system.monotonicMillis())
  }
  const kinds = {
    queries: { invoke, find: () => null },
    mutations: { invoke },
    actions: { invoke },
  }
  const port = { ...kinds, preparations, inFlight, system }
  const calls = new CallAdmission(port as unknown as CallsPort)
  const definition = (kind: FunctionKind) => ({
    ...{ name: kind, kind, arguments: {}, returns: { type: 'any' } },
  })
  const release = {
    releaseId: system.ids.make('rel'),
    tables: new Map(),
    functions: new Map(KINDS.map((kind) => [kind, definition(kind)])),
  } as unknown as Release
  return {
    ...{ answer, inFlight, preparations, release },
    skip: (millis: number) => {
      skipped += millis
    },
    call: (kind: FunctionKind, signal?: { readonly aborted: boolean }): Promise<unknown> => {
      const request = { release, definition: definition(kind), arguments: new Map(), signal }
      const made = Promise.resolve(calls[kind](request as unknown as MutationRequest))
      return made.catch((error: { code: string }) => error.code)
    },
  }
}

test('a call waits for its Release no longer than it may take, and has what is left', async () => {
  const { call, skip, answer, inFlight, preparations, release } = bench()
  const early = KINDS.map((kind) => call(kind))
  skip(6_000)
  const late = KINDS.map((kind) => call(kind))
  skip(4_000)
  expect(await Promise.all(early)).toEqual(KINDS.map(() => 'DEADLINE_EXCEEDED'))
  expect(inFlight.count).toBe(3)
  answer.resolve([])
  for (const left of await Promise.all(late))
    expect(Math.abs(Number(left) - 6_000)).toBeLessThan(500)
  expect(preparations.find(release.releaseId)).not.toBeNull()
})

test('one whose caller leaves meanwhile ends, but a Mutation is carried out', async () => {
  const { call, answer } = bench()
  const signal = { aborted: false }
  const [query, mutation, action] = KINDS.map((kind) => call(kind, signal))
  const other = call('query')
  signal.aborted = true
  expect(await Promise.all([query, action])).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
  answer.resolve([])
  expect(Number(await mutation)).toBeGreaterThan(0)
  expect(Number(await other)).toBeGreaterThan(0)
})

test('what is prepared is kept until that ends, though nobody waits for it any more', async () => {
  const { call, skip, answer, inFlight, release } = bench()
  const left = call('query')
  skip(10_000)
  expect(await left).toBe('DEADLINE_EXCEEDED')
  let ended = 0
  const kept = () => inFlight.keepOnly(new Map(), () => ended++).has(release.releaseId)
  expect(kept()).toBe(true)
  answer.reject(new Error('the store'))
  await inFlight.idle()
  expect(ended).toBe(1)
  expect(kept()).toBe(false)
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { TestConfiguration } from '../../../testing/configurations.ts'
import { testCursors } from '../../../testing/cursors.ts'
import { inProcessPool, type TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { noStorage } from '../../../testing/files/function-storage.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { realSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import {
  type AuthMode,
  type FunctionalIdentity,
  type Principal,
  principalOf,
} from '../../value/identities.ts'
import type { FunctionKind, FunctionManifest, TableManifest } from '../../value/manifest.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { createEngine } from '../create-engine.ts'
import type { Release } from '../releases/executable-release.ts'

const NOTES: TableManifest = { name: 'notes', fields: { text: { type: 'string' } }, indexes: [] }
const system = realSystem()
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

type Declared = Readonly<Record<string, readonly [FunctionKind, AuthMode, TestHandler]>>

function manifestOf(name: string, kind: FunctionKind, auth: AuthMode): FunctionManifest {
  return {
    name,
    kind,
    auth,
    visibility: 'public',
    clients: ['public'],
    arguments: {},
    returns: { type: 'any' },
    errors: {},
  }
}

async function engineWith(declared: Declared) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-callers-'))
  const store = await openSqliteDocuments(join(directory, 'documents.db'))
  const entries = Object.entries(declared)
  const pool = inProcessPool(
    Object.fromEntries(entries.map(([name, [, , handler]]) => [name, handler])),
  )
  Object.assign(pool, { close: async () => undefined, warm: async () => undefined })
  const issueGuest = (request: { entropy: Uint8Array; expiresInSeconds: number }) =>
    `${Buffer.from(request.entropy).toString('hex')} for ${request.expiresInSeconds}`
  const configuration = new TestConfiguration()
  const engine = createEngine({
    store,
    pool,
    system,
    log: memoryLog().log,
    metrics: new Metrics(system),
    issueGuest,
    storage: noStorage(),
    cursors: testCursors(),
    configuration,
  })
  open.push(async () => {
    await engine.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const release: Release = {
    releaseId: system.ids.make('rel'),
    source: '',
    sourceMap: null,
    functions: new Map(entries.map(([name, [kind, auth]]) => [name, manifestOf(name, kind, auth)])),
    tables: new Map([['notes', NOTES]]),
  }
  const request = (name: string, principal: Principal | null) => ({
    release,
    definition: release.functions.get(name)!,
    arguments: new Map(),
    principal,
    context: { requestId: 'req_test', invocationId: 'ivc_test' },
  })
  return {
    pool,
    query: async (name: string, principal: Principal | null) =>
      decodeTagged(JSON.parse((await engine.query(request(name, principal))).resultText)),
    mutation: async (name: string, principal: Principal | null) => {
      const operation = { operationId: system.ids.make('opn'), target: 't', caller: 'c' }
      return engine.mutation({ ...request(name, principal), ...operation })
    },
  }
}

function principal(given: Partial<FunctionalIdentity> = {}): Principal {
  const base = { kind: 'user', subject: 'a', issuer: 'https://users.test', roles: [] } as const
  const identity = { ...base, ...given } as FunctionalIdentity
  return {
    kind: identity.kind,
    key: principalOf(identity),
    identityText: JSON.stringify(identity),
  }
}

const A = principal()
const B = principal({ subject: 'b' })

describe('a cached result', () => {
  test('the cached result of a Query that read the identity is for that caller alone', async () => {
    const bench = await engineWith({ who: ['query', 'optional', (ctx) => ctx.identity()?.subject] })
    const callers = [A, B, null, A, B, null, A, B, null]
    const results = []
    for (const caller of callers) results.push(await bench.query('who', caller))
    expect(results).toEqual(['a', 'b', null, 'a', 'b', null, 'a', 'b', null])
    // A result is cached from the second request on.
    expect(bench.pool.calls).toBe(6)
  })

  test('the result of a Query that did not read the identity is for all callers', async () => {
    const bench = await engineWith({ same: ['query', 'user', () => 'same'] })
    for (const caller of [A, B, A, B, A, B]) {
      expect(await bench.query('same', caller)).toBe('same')
    }
    expect(bench.pool.calls).toBe(2)
  })

  test('a cached result is shared until a document makes the Query read the identity', async () => {
    const bench = await engineWith({
      note: [
        'query',
        'user',
        async (ctx) => {
          const { documents } = await ctx.range({ table: 'notes' })
          return documents.length === 0 ? 'nothing' : ctx.identity().subject
        },
      ],
      write: ['mutation', 'none', (ctx) => ctx.insert('notes', { text: 'private' })],
    })
    for (const caller of [A, B, A]) expect(await bench.query('note', caller)).toBe('nothing')
    await bench.mutation('write', null)
    for (const caller of [A, B, A, B]) {
      expect(await bench.query('note', caller)).toBe(JSON.parse(caller.identityText).subject)
    }
  })

  test('other roles, issuers or kinds of the same subject do not share a result', async () => {
    const bench = await engineWith({
      who: ['query', 'optional', (ctx) => JSON.stringify(ctx.identity())],
    })
    const callers = [
      A,
      principal({ roles: ['admin'] }),
      principal({ issuer: 'https://other.test' }),
      principal({ kind: 'service' }),
      principal({ email: 'a@b.test' }),
    ]
    for (const _ of [1, 2, 3]) {
      for (const caller of callers) {
        expect(await bench.query('who', caller)).toBe(caller.identityText)
      }
    }
  })

  test('the result is for one caller if a called Function used the identity', async () => {
    const bench = await engineWith({
      outer: ['query', 'optional', (ctx) => ctx.run('query', 'inner')],
      inner: ['query', 'user', () => 'for users'],
    })
    for (const _ of [1, 2, 3]) {
      expect(await bench.query('outer', A)).toBe('for users')
      await expect(bench.query('outer', null)).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
    }
  })
})

describe('a called Function', () => {
  const who: TestHandler = (ctx) => JSON.stringify(ctx.identity())

  test.each<[AuthMode, Principal | null, string]>([
    ['none', A, 'null'],
    ['optional', A, A.identityText],
    ['optional', null, 'null'],
    ['user', A, A.identityText],
    ['user', null, 'rejected'],
    ['guest', A, 'rejected'],
    ['service', A, 'rejected'],
  ])(
    'a called Function with the auth mode %s sees the identity that the mode admits',
    { tags: ['slow'] },
    async (mode, caller, seen) => {
      const bench = await engineWith({
        outer: ['query', 'optional', (ctx) => ctx.run('query', 'inner').catch(() => 'rejected')],
        inner: ['query', mode, who],
      })
      expect(await bench.query('outer', caller)).toBe(seen)
    },
  )
})

describe('a guest', () => {
  test('a guest is the same in all attempts of a Mutation, and new in each call', async () => {
    const seen: string[] = []
    const bench = await engineWith({
      enter: [
        'mutation',
        'none',
        async (ctx) => {
          const guests = [await ctx.issueGuest(60), await ctx.issueGuest(60)]
          guests.push(await ctx.run('mutation', 'inner'))
          // The runner of the first attempt is lost at its end.
          bench.pool.loseNext = seen.length === 0 ? 1 : 0
          seen.push(...guests)
          return guests
        },
      ],
      inner: ['mutation', 'none', (ctx) => ctx.issueGuest(60)],
    })
    await bench.mutation('enter', null)
    const first = seen.slice(0, 3)
    expect(seen.slice(3)).toEqual(first)
    expect(first[0]).toMatch(/^[0-9a-f]{20} for 60$/)
    expect(new Set(seen).size).toBe(3)
    await bench.mutation('enter', null)
    expect(new Set(seen).size).toBe(6)
  })

  test('a guest is never issued by a Query, even if its runner requests it', async () => {
    const bench = await engineWith({ enter: ['query', 'none', (ctx) => ctx.issueGuest(60)] })
    await expect(bench.query('enter', null)).rejects.toMatchObject({
      code: 'FUNCTION_FAILED',
      detail: 'TypeError: ctx.auth.issueGuest: a Query cannot issue guests; make it a mutation',
    })
  })
})

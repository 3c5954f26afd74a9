/**
 * Functions that try to get out or to take everything, against the compiled server: each is
 * stopped, its caller is told within 200 ms of the bound, and calls in flight beside it succeed.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Application, application, int64, mutation, query, string } from './application.ts'

const HOSTILE = `import { mutation, query, v } from 'svc'

const clients = ['confidential'] as const
const attempt = (work: () => unknown): string => {
  try {
    return 'escaped: ' + String(work())
  } catch (error) {
    return 'stopped'
  }
}
const host = () => [].constructor.constructor('return this')() as any

export const code = query({
  clients,
  returns: v.string(),
  handler: () => attempt(() => host()),
})
export const globals = query({
  clients,
  returns: v.array(v.string()),
  handler: () => {
    const names = ['process', 'Bun', 'require', 'fetch', 'WebSocket', 'Worker',
      'setTimeout', 'SharedArrayBuffer', 'WebAssembly']
    return names.filter((name) => name in globalThis)
  },
})
export const loops = query({
  clients,
  arguments: { nonce: v.int64() },
  handler: () => { for (;;); },
})
export const microtasks = query({
  clients,
  arguments: { nonce: v.int64() },
  handler: async () => { for (;;) await null },
})
export const eats = query({
  clients,
  arguments: { nonce: v.int64() },
  handler: () => {
    const kept: unknown[] = []
    for (;;) kept.push(new Array(1000).fill(kept.length))
  },
})
export const bytes = query({
  clients,
  arguments: { nonce: v.int64() },
  handler: () => {
    const kept: Uint8Array[] = []
    for (;;) kept.push(new Uint8Array(1_000_000).fill(1))
  },
})
export const recurses = query({
  clients,
  arguments: { nonce: v.int64() },
  handler: () => { const again = (): number => 1 + again(); return again() },
})
export const poisons = query({
  clients,
  returns: v.string(),
  handler: () => attempt(() => {
    (Array.prototype as any).map = () => ['poisoned']
    return [1].map((x) => x)[0]
  }),
})
export const honest = query({
  clients,
  arguments: { nonce: v.int64() },
  returns: v.int64(),
  handler: async (ctx, { nonce }) => {
    await ctx.db.table('channels').scan().take(10)
    return nonce
  },
})
export const writes = mutation({
  clients,
  arguments: { name: v.string() },
  returns: v.id('channels'),
  handler: (ctx, { name }) => ctx.db.insert('channels', { name }),
})
`

let app: Application
let nonce = 0

beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/hostile.ts'), HOSTILE)
  })
}, 120_000)

afterAll(async () => {
  await app?.of.dispose()
})

const hostile = (name: string) =>
  query(app, { function: `hostile.${name}`, arguments: { nonce: int64(nonce++) } })

describe('a hostile Function', () => {
  test('finds no way from its language to the process', async () => {
    expect((await query(app, { function: 'hostile.code' })).body.result).toEqual(string('stopped'))
    expect((await query(app, { function: 'hostile.globals' })).body.result.value).toEqual([])
    const poisons = await query(app, { function: 'hostile.poisons' })
    expect(poisons.body.error.code).toBe('FUNCTION_FAILED')
    expect((await query(app, { function: 'hostile.globals' })).body.result.value).toEqual([])
  })

  test.each([
    ['loops', 'LIMIT_EXCEEDED', 1_000],
    ['microtasks', 'LIMIT_EXCEEDED', 1_000],
    ['eats', 'LIMIT_EXCEEDED', 1_000],
    ['bytes', 'LIMIT_EXCEEDED', 1_000],
  ])(
    '%s is stopped within 200 ms of its bound while calls beside it succeed',
    async (name, code, boundMillis) => {
      const started = performance.now()
      const attack = hostile(name).then((reply) => ({ reply, millis: performance.now() - started }))
      const beside = Promise.all(
        Array.from({ length: 20 }, async () => {
          const mine = nonce
          const reply = await hostile('honest')
          expect(reply.status).toBe(200)
          return mine
        }),
      )
      const written = mutation(app, {
        function: 'hostile.writes',
        arguments: { name: string(`beside ${name}`) },
      })
      const { reply, millis } = await attack
      await beside
      expect((await written).status).toBe(200)
      expect(reply.body.error.code).toBe(code)
      expect(reply.status).toBe(413)
      expect(millis).toBeLessThan(boundMillis + 200)
      expect((await hostile('honest')).status).toBe(200)
    },
  )

  test('that recurses without end fails alone', async () => {
    const reply = await hostile('recurses')
    expect(reply.body.error.code).toBe('FUNCTION_FAILED')
    expect((await hostile('honest')).status).toBe(200)
  })

  test('runs in a process that the kernel holds: few calls, no capability, no root', async () => {
    // One that stands by may be starting at this moment; it holds no code before it is contained.
    await vi.waitFor(() => {
      const runners = processes().filter(({ command }) => command.startsWith('svc-runner'))
      expect(runners.length).toBeGreaterThan(0)
      for (const runner of runners) expectContained(runner)
    }, 5_000)
  })
})

function expectContained({ status, environment }: Running): void {
  expect(status).toMatch(/^Seccomp:\t2$/m)
  expect(status).toMatch(/^NoNewPrivs:\t1$/m)
  expect(status).toMatch(/^CapEff:\t0+$/m)
  expect(status).toMatch(/^Uid:(\t[1-9]\d*){4}$/m)
  // What the runner itself sets for its allocator and its clock.
  const names = environment.split('\0').flatMap((entry) => entry.split('=')[0] || [])
  expect(names.filter((name) => name !== 'MIMALLOC_ARENA_RESERVE' && name !== 'TZ')).toEqual([])
}

interface Running {
  readonly command: string
  readonly status: string
  readonly environment: string
}

function processes(): Running[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
        return [{ command: readFileSync(`/proc/${pid}/cmdline`, 'utf8'), status, environment }]
      } catch {
        return []
      }
    })
}

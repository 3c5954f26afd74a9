/**
 * Functions that try to escape or to exhaust resources, against the compiled server: each is
 * stopped as hostile/outcomes.ts says, concurrent calls succeed, and the server is unchanged
 * afterwards.
 *
 * @module-tag slow
 */
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Application,
  action,
  application,
  int64,
  type Json,
  mutation,
  query,
  string,
} from '../application.ts'
import { call } from '../harness.ts'
import {
  findServer,
  kernelText,
  readDescriptors,
  readListeners,
  readRunners,
  readServing,
  residentBytes,
} from './machine.ts'
import { HELD, ONLY_LONG, OUTCOMES, type Outcome } from './outcomes.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const HOSTILE = import.meta.dirname
const MEBIBYTE = 1024 * 1024
/** CPU time that a call may use. */
const BOUND_MILLIS = 1_000
/** Time limit that only a hang exceeds: a call has ten seconds, and a busy machine adds delay. */
const HANG_MILLIS = 60_000
/** Longest time from a bound to the response that reports it. */
const LATE_MILLIS = 200

let app: Application
let server: number
let before: State
let nonce = 0

/** State that must be the same afterwards. */
interface State {
  readonly listeners: readonly string[]
  readonly queryMillis: number
  readonly residentBytes: number
  readonly files: readonly string[]
}

beforeAll(async () => {
  app = await application((workspace) => {
    cpSync(join(HOSTILE, 'functions'), join(workspace, 'functions'), { recursive: true })
    cpSync(join(HOSTILE, 'attempts.ts'), join(workspace, 'attempts.ts'))
  })
  server = findServer(app.installation.directory)
  await innocentCalls(100)
  before = await state()
})

afterAll(async () => {
  await app?.installation.dispose()
})

const next = () => ({ nonce: int64(nonce++) })
const reads = () => query(app, { function: 'innocent.reads', arguments: next() })
const writes = () => mutation(app, { function: 'innocent.writes', arguments: next() })

/** Makes calls one after the other. Returns the median of their durations, in milliseconds. */
async function innocentCalls(count: number): Promise<number> {
  const millis: number[] = []
  for (let i = 0; i < count; i++) {
    const started = performance.now()
    expect((await reads()).status).toBe(200)
    millis.push(performance.now() - started)
  }
  return millis.sort((a, b) => a - b)[count >> 1]!
}

/** Returns the share of one CPU that this process gets, measured over 200 ms of CPU time. */
function shareOfACpu(): number {
  const [started, before] = [performance.now(), process.cpuUsage()]
  for (;;) {
    const { user, system } = process.cpuUsage(before)
    const millis = (user + system) / 1_000
    if (millis > 200) return Math.min(1, millis / (performance.now() - started))
  }
}

/** Returns the addresses of the server. Application processes share one. */
const listeners = () => [...new Set(readServing(server).flatMap(readListeners))].sort()
const serverBytes = () => readServing(server).reduce((sum, pid) => sum + residentBytes(pid), 0)

async function state(): Promise<State> {
  return {
    listeners: listeners(),
    queryMillis: await innocentCalls(200),
    residentBytes: serverBytes(),
    files: readdirSync(app.installation.directory, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.startsWith('product/artifacts/'))
      .sort(),
  }
}

const INVOKE = { query, mutation, action }

/** Returns the kind of each Function that the files export, by `file.export`. */
function exported(): Map<string, keyof typeof INVOKE> {
  const found = new Map<string, keyof typeof INVOKE>()
  for (const file of readdirSync(join(HOSTILE, 'functions'))) {
    const text = readFileSync(join(HOSTILE, 'functions', file), 'utf8')
    for (const [, name, made] of text.matchAll(/^export const (\w+) = (\w+)\(/gm)) {
      const kind = file === 'actions.ts' ? 'action' : made!.replace('hostile', '').toLowerCase()
      found.set(`${file.replace('.ts', '')}.${name}`, kind as 'query')
    }
  }
  return found
}

const kinds = exported()
const rows = Object.entries(OUTCOMES).flatMap(([file, functions]) =>
  Object.entries(functions).map(([name, outcome]) => [`${file}.${name}`, outcome] as const),
)

function expectOutcome(name: string, { status, body }: Json, outcome: Outcome): void {
  if (outcome === 'stopped') expect([status, body.result]).toEqual([200, string('stopped')])
  else if (outcome === 'held') expect([status, body.result]).toEqual([200, HELD[name]])
  else {
    const codes = typeof outcome === 'string' ? [outcome] : outcome
    expect(body.result).toBeUndefined()
    expect(codes).toContain(body.error.code)
    // No text of the code reaches the caller.
    expect(Object.keys(body.error).sort()).toEqual(['code', 'message', 'retryable'])
  }
}

test('every attempt has its outcome, and there are at least forty', () => {
  const attempts = [...kinds.keys()].filter((name) => !name.startsWith('innocent.'))
  expect(attempts.toSorted()).toEqual(rows.map(([name]) => name).toSorted())
  expect(attempts.length).toBeGreaterThanOrEqual(40)
})

describe('hostile Functions', () => {
  test.each(rows.filter(([name]) => LONG || !ONLY_LONG.includes(name)))(
    'the attempt %s is stopped without an effect on concurrent calls',
    async (name, outcome) => {
      const kind = kinds.get(name)!
      const invoke = INVOKE[kind]
      const started = performance.now()
      const attack = invoke(app, { function: name, arguments: next() }).then((reply) => ({
        reply,
        millis: performance.now() - started,
      }))
      const others = await Promise.all([reads(), reads(), reads(), reads(), writes()])
      const { reply, millis } = await attack
      expectOutcome(name.split('.')[1]!, reply, outcome)
      for (const innocent of others) expect(innocent.status).toBe(200)
      // An Action has ten minutes and is ended by other bounds.
      if (kind !== 'action') expect(millis).toBeLessThan(HANG_MILLIS)
      expect((await reads()).status).toBe(200)
    },
  )

  // How late it is depends on the machine; src/engine/runners/limits-watch.test.ts steers time.
  test.runIf(LONG).each(['exhaustion.loops', 'memory.keepsObjects'])(
    'the attempt %s ends within 200 ms of its bound',
    async (name) => {
      for (let tries = 1; ; tries++) {
        const share = shareOfACpu()
        const started = performance.now()
        expect((await query(app, { function: name, arguments: next() })).status).toBe(413)
        const millis = (performance.now() - started) * share
        if (millis < BOUND_MILLIS + LATE_MILLIS) break
        expect(tries).toBeLessThan(10)
      }
    },
  )

  test('a context that another call stored is invalid', async () => {
    for (let calls = 0; calls < 3; calls++) {
      const reply = await query(app, { function: 'host.usesAnotherCtx', arguments: next() })
      expect(reply.body.result).toEqual(string('stopped'))
    }
  })
})

test('every runner is a process that the kernel contains', async () => {
  // A standby runner may be starting at this moment; it has no code before it is contained.
  await vi.waitFor(() => {
    const runners = readRunners(server)
    expect(runners.length).toBeGreaterThan(0)
    for (const { pid } of runners) expectContained(pid)
  }, 60_000)
})

function expectContained(pid: number): void {
  const status = kernelText(`/proc/${pid}/status`)
  expect(status).toMatch(/^Seccomp:\t2$/m)
  expect(status).toMatch(/^NoNewPrivs:\t1$/m)
  for (const set of ['Prm', 'Eff', 'Amb']) {
    expect(status).toMatch(new RegExp(`^Cap${set}:\\t0+$`, 'm'))
  }
  expect(status).toMatch(/^Uid:(\t[1-9]\d*){4}$/m)
  // The variables that the runner sets for its allocator, its engine and its clock.
  const environment = kernelText(`/proc/${pid}/environ`)!
    .split('\0')
    .filter((entry) => entry !== '')
  expect(environment.sort()).toEqual([
    '=UN_JSC_useTailCalls=0',
    'BUN_JSC_useTailCalls=0',
    'MIMALLOC_ARENA_RESERVE=65536',
    'TZ=UTC',
  ])
  for (const limit of [
    'Max core file size +0 +0',
    'Max file size +0 +0',
    'Max open files +64 +64',
  ]) {
    expect(kernelText(`/proc/${pid}/limits`)).toMatch(new RegExp(limit))
  }
  // Its log, its progress record, its socket, and the descriptors of the runtime's event loop.
  const own = ['/dev/null', '/dev/null', 'socket:', '/memfd:svc-runner', 'socket:']
  for (const [fd, target] of Object.entries(readDescriptors(pid))) {
    const known = new RegExp(`^${own[Number(fd)] ?? 'anon_inode:'}`)
    expect(target).toMatch(known)
  }
}

describe('the server after all attacks', () => {
  test('the server is ready, and its listeners are unchanged', async () => {
    const ready = await call(app.server.management, 'GET', '/health/ready')
    expect([ready.status, ready.body]).toEqual([200, { status: 'ready' }])
    expect((await call(app.server.application!, 'GET', '/readyz')).status).toBe(200)
    expect(listeners()).toEqual(before.listeners)
    expect(before.listeners).toHaveLength(2)
    expect(app.server.lines.filter((line) => line.includes('server.uncaught'))).toEqual([])
  })

  // On a machine that runs other tests a call may take any multiple.
  test.runIf(LONG)('a call is about as fast as before', async () => {
    await vi.waitFor(
      async () => {
        const { queryMillis } = await state()
        expect(queryMillis).toBeLessThan(10 * before.queryMillis)
      },
      { timeout: 60_000, interval: 500 },
    )
  })

  test('the memory of the server is about as large as before', async () => {
    await vi.waitFor(
      () => {
        const grown = serverBytes() - before.residentBytes
        expect(grown).toBeLessThan(128 * MEBIBYTE * readServing(server).length)
      },
      { timeout: 60_000, interval: 200 },
    )
  })

  test('there are no processes except runners, no new files and no new sockets', async () => {
    const { files } = await state()
    expect(files).toEqual(before.files)
    for (let each = 0; each < nonce; each++)
      expect(existsSync(`/tmp/svc-hostile-${each}`)).toBe(false)
    await vi.waitFor(() => {
      const runners = readRunners(server)
      const serving = readServing(server)
      expect(runners.length).toBeGreaterThan(0)
      for (const { pid, parent, command } of runners) {
        expect(command).toMatch(/^svc-runner __runner/)
        expect(serving).toContain(parent)
        expect(readListeners(pid)).toEqual([])
      }
    }, 60_000)
  })
})

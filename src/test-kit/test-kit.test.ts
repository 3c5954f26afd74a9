import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NOTES_FILES } from '../../testing/test-kit/notes-workspace.ts'
import { type KitWorkspace, kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { testEnvironment } from './test-kit.ts'

let workspace: KitWorkspace
beforeAll(() => {
  workspace = kitWorkspace('empty', NOTES_FILES)
  process.env.SVC_EXECUTABLE = workspace.executable
})
afterAll(() => workspace.remove())

const open = (options: Parameters<typeof testEnvironment>[0] = {}) =>
  testEnvironment({ workspace: workspace.directory, ...options })

/** Returns the names of the directories of host processes. */
const hostFiles = () => readdirSync(tmpdir()).filter((name) => /^svc-test-[0-9]+-/.test(name))

describe('calls', () => {
  test('values are plain in arguments, results and documents', { tags: ['slow'] }, async () => {
    await using backend = await open({ now: new Date('2026-03-01T12:00:00Z') })
    const id = await backend.mutation('notes.add', { text: 'one' })
    expect(id).toMatch(/^notes_/)
    const at = BigInt(Date.parse('2026-03-01T12:00:00Z')) * 1_000n
    expect(await backend.documents('notes')).toEqual([
      { _id: id, _createdAt: at, _revision: expect.any(BigInt), text: 'one', at, by: null },
    ])
    expect(backend.now).toBe(at + 1_000n)
  })

  test('documents of successive calls have the order of the calls', async () => {
    await using backend = await open()
    const texts = Array.from({ length: 20 }, (_, i) => `note ${i}`)
    for (const text of texts) await backend.mutation('notes.add', { text })
    expect(await backend.query('notes.list')).toEqual(texts)
  })

  test('a text may have any character, also those that end a line', async () => {
    await using backend = await open()
    const text = 'a\n\r\n\u2028\u2029\0é€😀'.repeat(100)
    await backend.mutation('notes.add', { text })
    expect(await backend.query('notes.list')).toEqual([text])
  })

  test('a signed URL of a file is renewed in simulated time', async () => {
    await using backend = await open({ now: new Date('2026-03-01T12:00:00Z') })
    const file = await backend.action('notes.draw')
    const show = () => backend.query('notes.show', { file }) as Promise<Record<string, unknown>>
    const { path, expiresAt } = await show()
    expect(path).toMatch(/^\/v1\/files\/signed-downloads\/rk_url_v1_/)
    expect(expiresAt).toBe(BigInt(Date.parse('2026-03-01T12:01:00Z')) * 1_000n)
    await backend.advance({ seconds: 10 })
    expect((await show()).path).toBe(path)
    await backend.advance({ seconds: 30 })
    expect((await show()).path).not.toBe(path)
  })

  test('each environment has documents of its own', { tags: ['slow'] }, async () => {
    await using one = await open()
    await using other = await open()
    await one.mutation('notes.add', { text: 'one' })
    expect(await other.query('notes.list')).toEqual([])
  })

  test('concurrent calls are all answered', async () => {
    await using backend = await open()
    const texts = Array.from({ length: 50 }, (_, i) => `note ${i}`)
    await Promise.all(texts.map((text) => backend.mutation('notes.add', { text })))
    const stored = (await backend.query('notes.list')) as string[]
    expect(stored.toSorted()).toEqual(texts.toSorted())
  })
})

describe('failures', () => {
  test('a declared error has its code, and nothing is written', async () => {
    await using backend = await open()
    const failed = backend.mutation('notes.add', { text: '' })
    const operationId = expect.stringMatching(/^opn_/)
    const requestId = expect.stringMatching(/^req_/)
    const expected = { name: 'CallError', code: 'APP_EMPTY', requestId, operationId }
    await expect(failed).rejects.toMatchObject({ ...expected, retryable: false })
    expect(await backend.documents('notes')).toEqual([])
  })

  test('an exception names the lines of the Workspace and of the test', async () => {
    const lines: object[] = []
    await using backend = await open({ log: (line) => lines.push(line) })
    const error = (await backend.query('notes.broken').catch((reason) => reason)) as Error
    expect(error).toMatchObject({ name: 'CallError', code: 'FUNCTION_FAILED' })
    expect(error.message).toContain('RangeError: broken on purpose')
    expect((error.cause as Error).stack).toContain('functions/notes.ts:')
    expect(error.stack).toContain('test-kit.test.ts')
    expect(lines).toEqual([
      {
        level: 'info',
        function: 'notes.broken',
        message: expect.any(String),
        data: expect.anything(),
      },
    ])
  })

  test('unknown Functions and invalid arguments are rejected before a Function runs', async () => {
    await using backend = await open()
    const code = (code: string) => expect.objectContaining({ name: 'CallError', code })
    const { query, mutation } = backend
    await expect(query('notes.missing')).rejects.toEqual(code('FUNCTION_NOT_FOUND'))
    await expect(mutation('notes.list')).rejects.toEqual(code('FUNCTION_NOT_FOUND'))
    await expect(mutation('notes.add', { text: 1 })).rejects.toEqual(code('ARGUMENTS_INVALID'))
    await expect(query(undefined)).rejects.toThrow('undefined')
    await expect(backend.documents('nowhere')).rejects.toEqual(code('REQUEST_INVALID'))
    const durations = [{ weeks: 1 }, {}, { hours: undefined }, { hours: -1 }, { days: 4_000 }]
    for (const duration of durations) {
      await expect(backend.advance(duration as object)).rejects.toThrow('at least one of')
    }
    for (const crons of ['hourly', true, null, {}, [5]]) {
      const options = { crons } as unknown as { crons: false }
      await expect(backend.advance({ hours: 1 }, options)).rejects.toThrow('a list of names')
    }
    const advancing = backend.advance({ hours: 1 }, { crons: ['hourly', 'weekly'] })
    await expect(advancing).rejects.toEqual(code('REQUEST_INVALID'))
  })

  test('an invalid Workspace is reported with file and line, and built again', async () => {
    const other = kitWorkspace('empty', { 'functions/bad.ts': 'export const a = nothing()\n' })
    try {
      const options = { workspace: other.directory }
      await expect(testEnvironment(options)).rejects.toMatchObject({
        code: 'WORKSPACE_INVALID',
        message: expect.stringContaining('functions/bad.ts:1'),
      })
      other.write('functions/bad.ts', 'export const a = 1\n')
      await (await testEnvironment(options)).close()
    } finally {
      other.remove()
    }
  })
})

describe('identities', () => {
  test('a Function sees the user, with issuer, roles and email', async () => {
    await using backend = await open()
    const claims = { roles: ['admin'], email: 'ada@example.com' }
    expect(await backend.asUser('ada', claims).query('notes.whoAmI')).toEqual({
      kind: 'user',
      subject: 'ada',
      issuer: 'https://identity.test',
      ...claims,
    })
    await backend.asUser('ada').mutation('notes.add', { text: 'mine' })
    expect(await backend.documents('notes')).toMatchObject([{ by: 'ada' }])
  })

  test('the identity has the kind that the Function declares', async () => {
    await using backend = await open()
    const denied = expect.objectContaining({ code: 'AUTH_POLICY_DENIED' })
    expect(await backend.asService('billing').query('notes.forServices')).toBe('billing')
    await expect(backend.asUser('ada').query('notes.forServices')).rejects.toEqual(denied)
    await expect(backend.asGuest().query('notes.whoAmI')).rejects.toEqual(denied)
    const missing = expect.objectContaining({ code: 'FUNCTIONAL_TOKEN_REQUIRED' })
    await expect(backend.query('notes.forServices')).rejects.toEqual(missing)
  })

  test('guests differ, and the token of a Function names one until it expires', async () => {
    await using backend = await open()
    const [one, other] = [backend.asGuest(), backend.asGuest()]
    const subject = await one.query('notes.forGuests')
    expect(subject).toMatch(/^gst_/)
    expect(await other.query('notes.forGuests')).not.toBe(subject)
    const guest = backend.asGuest((await backend.mutation('notes.join')) as string)
    expect(await guest.query('notes.forGuests')).toMatch(/^gst_/)
    await backend.advance({ minutes: 2 })
    const expired = expect.objectContaining({ code: 'FUNCTIONAL_TOKEN_INVALID' })
    await expect(guest.query('notes.forGuests')).rejects.toEqual(expired)
  })
})

describe('simulated time', () => {
  test('a Query sees the new time after each step, although its result was cached', async () => {
    await using backend = await open()
    for (let i = 0; i < 5; i++) {
      expect(await backend.query('notes.now')).toBe(backend.now - 1_000n)
      await backend.advance({ seconds: 1 })
    }
  })

  test('scheduled work runs in `advance`, in the order of the due times', {
    tags: ['slow'],
  }, async () => {
    await using backend = await open()
    await backend.mutation('notes.later', { text: 'third', minutes: 90n })
    await backend.mutation('notes.later', { text: 'first', minutes: 0n })
    await backend.mutation('notes.later', { text: 'second', minutes: 5n })
    const notes = async () => (await backend.documents('notes')) as { text: string; at: bigint }[]
    const written = async () =>
      (await notes()).map(({ text }) => text).filter((t) => !/^t.ck/.test(t))
    expect(await written()).toEqual([])
    await backend.advance()
    expect(await written()).toEqual(['first'])
    await backend.advance({ minutes: 4 })
    expect(await written()).toEqual(['first'])
    await backend.advance({ minutes: 1 })
    expect(await written()).toEqual(['first', 'second'])
    await backend.advance({ days: 1 })
    expect(await written()).toEqual(['first', 'second', 'third'])
    const due = (await backend.scheduled()) as { dueAt: bigint; state: string; cron: null }[]
    const [third] = due.filter(({ cron }) => cron === null)
    expect(third!.state).toBe('succeeded')
    expect((await notes()).find(({ text }) => text === 'third')!.at).toBe(third!.dueAt)
  })

  test('Crons run at their times in their zones', { tags: ['slow'] }, async () => {
    const now = new Date('2026-03-28T12:00:00Z')
    await using backend = await open({ now })
    await backend.advance({ days: 2 })
    const work = (await backend.scheduled()) as { cron: string; dueAt: bigint; state: string }[]
    const dueOf = (cron: string) =>
      work
        .filter((each) => each.cron === cron)
        .map(({ dueAt }) => new Date(Number(dueAt / 1_000n)).toISOString())
    // Summer time begins on 29 March.
    expect(dueOf('daily')).toEqual(['2026-03-29T05:30:00.000Z', '2026-03-30T05:30:00.000Z'])
    expect(dueOf('hourly')).toHaveLength(48)
    expect(dueOf('hourly')[0]).toBe('2026-03-28T13:00:00.000Z')
    expect(new Set(work.map(({ state }) => state))).toEqual(new Set(['succeeded']))
  })

  test('disabled Crons do not run, and do not run later for missed times', async () => {
    await using backend = await open()
    const crons = async () => {
      const work = (await backend.scheduled()) as { cron: string | null }[]
      return work.map(({ cron }) => cron)
    }
    await backend.mutation('notes.later', { text: 'later', minutes: 5n })
    await backend.advance({ hours: 36 }, { crons: false })
    expect(await crons()).toEqual([null])
    expect(await backend.query('notes.list')).toEqual(['later'])
    await backend.advance({ hours: 24 }, { crons: ['daily'] })
    expect(await crons()).toEqual([null, 'daily'])
    await backend.advance({ hours: 1 })
    expect(await crons()).toEqual([null, 'daily', 'hourly'])
  })

  test('a failure of scheduled work is logged and in its history', async () => {
    const lines: { level: string; function: string; message: string }[] = []
    await using backend = await open({ log: (line) => lines.push(line) })
    await backend.mutation('notes.later', { text: 'fail', minutes: 0n })
    await backend.advance()
    expect(await backend.scheduled()).toMatchObject([
      { function: 'notes.write', state: 'failed', lastErrorCode: 'FUNCTION_FAILED' },
    ])
    expect(lines[0]).toMatchObject({ level: 'error', function: 'notes.write' })
    expect(lines[0]!.message).toContain('it does not write')
  })

  test('scheduled Actions run and call Mutations', async () => {
    await using backend = await open()
    await backend.mutation('notes.sweepLater')
    await backend.advance({ hours: 2 })
    expect(await backend.query('notes.list')).toContain('swept')
  })
})

describe('Actions', () => {
  const secrets = { WEATHER_KEY: 'sesame' }

  test('requests reach the handler of the test, with configuration and files', async () => {
    const seen: string[] = []
    await using backend = await open({
      secrets,
      variables: { UNITS: 'metric' },
      now: new Date('2026-05-05T05:05:05Z'),
      fetch: async (request) => {
        const { method, url, headers } = request
        seen.push(`${method} ${url} ${headers.get('authorization')} ${await request.text()}`)
        return new Response('sunny', { status: 201 })
      },
    })
    const result = await backend.action('notes.weather', { host: 'weather.example' })
    expect(result).toBe('201 sunny 2026-05-05T05:05:05.000Z')
    expect(seen).toEqual(['POST https://weather.example/today sesame {"units":"metric"}'])
  })

  test('a request without an answer or a declared host, or that fails, is an error', async () => {
    await using backend = await open({ secrets, variables: { UNITS: 'metric' } })
    const call = (host = 'weather.example') => backend.action('notes.weather', { host })
    await expect(call()).rejects.toThrow('the test has no answer to POST https://weather.example')
    backend.fetch = () => new Response('anything')
    await expect(call('other.example')).rejects.toThrow('uses.network')
    backend.fetch = () => {
      throw new Error('the line is dead')
    }
    await expect(call()).rejects.toThrow('the line is dead')
  })
})

describe('seeds', () => {
  /** Returns the IDs, times and random numbers that a test sees. */
  const observe = async (options: Parameters<typeof testEnvironment>[0]) => {
    await using backend = await open(options)
    const ids = [await backend.mutation('notes.add', { text: 'one' })]
    const random = [await backend.mutation('notes.random'), await backend.mutation('notes.random')]
    await backend.mutation('notes.later', { text: 'two', minutes: 1n })
    await backend.advance({ hours: 3 })
    const guest = await backend.asGuest().query('notes.forGuests')
    return {
      ids,
      random,
      guest,
      scheduled: await backend.scheduled(),
      notes: await backend.documents('notes'),
    }
  }

  test('equal seeds give equal IDs, randomness and times, and different seeds do not', {
    tags: ['slow'],
  }, async () => {
    const [one, again, other] = [
      await observe({ seed: 7 }),
      await observe({ seed: 7 }),
      await observe({ seed: 8 }),
    ]
    expect(again).toEqual(one)
    expect(other.ids).not.toEqual(one.ids)
    expect(other.random).not.toEqual(one.random)
    expect(other.guest).not.toEqual(one.guest)
    expect(one.random[0]).not.toEqual(one.random[1])
  })

  test('the variable SVC_SEED replaces the default', { tags: ['slow'] }, async () => {
    const before = process.env.SVC_SEED
    try {
      delete process.env.SVC_SEED
      const byDefault = await observe({})
      process.env.SVC_SEED = '4711'
      expect((await observe({})).ids).toEqual((await observe({ seed: 4711 })).ids)
      expect((await observe({})).ids).not.toEqual(byDefault.ids)
    } finally {
      if (before === undefined) delete process.env.SVC_SEED
      else process.env.SVC_SEED = before
    }
  })
})

describe('the process that hosts environments', () => {
  test('a closed environment rejects calls, and may be closed twice', async () => {
    const backend = await open()
    await backend.close()
    await backend.close()
    await expect(backend.query('notes.list')).rejects.toThrow('closed')
  })

  test('a new environment starts another host after the death of the first', {
    tags: ['slow'],
  }, async () => {
    const backend = await open()
    for (const name of hostFiles()) {
      const pid = Number(name.split('-')[2])
      if (parentOf(pid) === process.pid) process.kill(pid, 'SIGKILL')
    }
    await expect(backend.query('notes.list')).rejects.toThrow('ended unexpectedly')
    await backend.close()
    await using next = await open()
    expect(await next.query('notes.list')).toEqual([])
  })
})

function parentOf(pid: number): number {
  const { stdout } = Bun.spawnSync(['ps', '-o', 'ppid=', '-p', String(pid)])
  return Number(stdout.toString())
}

describe('migrations', () => {
  test('a migration passes each document once, and tells how many it changed', async () => {
    await using backend = await open()
    for (const text of ['one', 'LOUD']) await backend.mutation('notes.add', { text })
    expect(await backend.migrate('shout')).toEqual({ processed: 2n, changed: 1n })
    expect(await backend.query('notes.list')).toEqual(['ONE', 'LOUD'])
    await backend.mutation('notes.add', { text: 'two' })
    expect(await backend.migrate('shout')).toEqual({ processed: 2n, changed: 1n })
  })

  test('a document that stops a migration is named with the reason', async () => {
    await using backend = await open()
    for (const text of ['one', 'quiet']) await backend.mutation('notes.add', { text })
    await expect(backend.migrate('shout')).rejects.toThrow(
      /shout stopped at notes_\w+: Error: it is not said aloud/,
    )
    expect(await backend.query('notes.list')).toEqual(['ONE', 'quiet'])
    await expect(backend.migrate('other')).rejects.toThrow('migrations.ts has no migration other')
  })
})

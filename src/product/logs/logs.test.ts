/** The log of an Environment: what is in it, its pages, its stream, its archive. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { openTestLogs, type TestLogs } from '../../../testing/logs.ts'
import { LOG_RECORDS_PER_SECOND_MAX } from '../../storage/logs/log-store.ts'
import { Secret } from '../../value/secret.ts'
import type { LogRecord } from '../../wire/logs.ts'
import { LogPage } from '../../wire/logs.ts'
import { read } from '../../wire/reading/read.ts'
import { HEARTBEAT_MILLIS } from './follow.ts'
import { LOG_FOLLOWERS_MAX } from './logs.ts'

let opened: TestLogs

afterEach(() => opened.dispose())

const messages = (items: readonly LogRecord[]) => items.map(({ message }) => message)

async function write(from: number, count: number): Promise<void> {
  for (let i = from; i < from + count; i++) opened.log.info('test.event', { message: `m${i}` })
  await opened.store.flushed()
}

const numbered = (from: number, count: number) => {
  return Array.from({ length: count }, (_, i) => `m${from + i}`)
}

describe('a record', () => {
  test('a record has the attributions of its call and the fields of ctx.log', async () => {
    opened = await openTestLogs()
    const ids = { requestId: 'req_1', invocationId: 'ivc_1', clientId: 'app_1', releaseId: 'rel_1' }
    const call = {
      ...ids,
      credentialId: 'crd_1',
      function: 'tasks.add',
      stream: 'function',
    } as const
    opened.log.lines(call, [{ level: 'info', message: 'hello', data: '{"amount":3}' }])
    await opened.store.flushed()
    const { items, next } = await opened.logs.page({}, 10)
    const { cursor, projectId, environmentId, atMicros, ...rest } = items[0]!
    expect(rest).toEqual({
      ...call,
      level: 'info',
      event: 'function.log',
      message: 'hello',
      fields: { amount: 3 },
    })
    expect([next, cursor, projectId, environmentId, atMicros]).toEqual([
      null,
      expect.stringMatching(/^logc_/),
      expect.stringMatching(/^prj_/),
      expect.stringMatching(/^env_/),
      String(opened.system.nowMicros()),
    ])
    read(LogPage, { version: 1, items, next }, 'PLATFORM_INTERNAL')
  })

  test('a record of a debug line has the level debug', async () => {
    opened = await openTestLogs()
    opened.log.lines({ stream: 'function' }, [{ level: 'debug', message: 'x', data: null }])
    opened.log.debug('platform.detail')
    await opened.store.flushed()
    const { items } = await opened.logs.page({}, 10)
    expect(items.map(({ level }) => level)).toEqual(['debug', 'debug'])
  })

  test('a record contains no secret of the Environment in any of its parts', async () => {
    opened = await openTestLogs()
    const canaries = ['canary-"quoted"\nvalue', 'canary', 'canary-long-value']
    opened.redaction.add(canaries.map((text) => new Secret(text)))
    const data = { [canaries[1]!]: [canaries[0]], nested: { key: canaries[2] } }
    const message = `a canary-long-value, ${canaries[0]} and canary`
    const line = { level: 'info', message, data: JSON.stringify(data) } as const
    opened.log.lines({ stream: 'function' }, [line])
    await opened.store.flushed()
    const [record] = (await opened.logs.page({}, 10)).items
    expect(JSON.stringify(record)).not.toContain('canary')
    expect(record!.message).toBe('a [redacted], [redacted] and [redacted]')
    await opened.close()
    const file = readFileSync(join(opened.directory, 'logs.db'))
    expect(file.includes('canary')).toBe(false)
  })

  test('a record over 64 KiB keeps its message without its fields', async () => {
    opened = await openTestLogs()
    const data = Object.fromEntries(numbered(0, 30).map((name) => [name, 'x'.repeat(4_000)]))
    const line = { level: 'info', message: 'much', data: JSON.stringify(data) } as const
    opened.log.lines({ stream: 'function' }, [line])
    await opened.store.flushed()
    const [record] = (await opened.logs.page({}, 10)).items
    expect([record!.message, Object.keys(record!.fields!)]).toEqual(['much', ['omitted']])
  })

  test('a record contains only the code of a private error', async () => {
    opened = await openTestLogs()
    const error = Object.assign(new Error('private detail'), { code: 'ECONNREFUSED' })
    opened.log.error('platform.failed', { error })
    await opened.store.flushed()
    const [record] = (await opened.logs.page({}, 10)).items
    expect(record).toMatchObject({ level: 'error', errorCode: 'ECONNREFUSED' })
    expect(JSON.stringify(record)).not.toContain('private')
  })
})

describe('a page', () => {
  test('a page without a cursor has the newest records, in ascending order', async () => {
    opened = await openTestLogs()
    await write(0, 25)
    const { items, next } = await opened.logs.page({}, 10)
    expect([messages(items), next]).toEqual([numbered(15, 10), null])
  })

  test('a page starts where the page before ended, across batches and a restart', async () => {
    opened = await openTestLogs()
    await write(0, 1)
    const [first] = (await opened.logs.page({}, 1)).items
    await write(1, 13)
    await opened.close()
    opened = await opened.reopen()
    await write(14, 11)
    const seen: string[] = []
    let after: string | null = first!.cursor
    while (after !== null) {
      const page = await opened.logs.page({ after }, 5)
      seen.push(...messages(page.items))
      after = page.next
    }
    expect(seen).toEqual(numbered(1, 24))
  })

  test('a page has only the records that match every filter', async () => {
    opened = await openTestLogs()
    const release = opened.system.ids.make('rel')
    const request = opened.system.ids.make('req')
    opened.log.warn('one', { requestId: request, releaseId: release, function: 'a.b' })
    opened.log.error('two', { requestId: request, stream: 'function' })
    opened.log.info('three', { releaseId: release, stream: 'audit' })
    await opened.store.flushed()
    const since = String(opened.system.nowMicros() + 1_000_000n)
    opened.system.advance(1_000)
    opened.log.info('four', { requestId: request })
    await opened.store.flushed()
    const events = async (query: Parameters<typeof opened.logs.page>[0]) => {
      return (await opened.logs.page(query, 10)).items.map(({ event }) => event)
    }
    expect(await events({ request })).toEqual(['one', 'two', 'four'])
    expect(await events({ release })).toEqual(['one', 'three'])
    expect(await events({ level: 'warn' })).toEqual(['one', 'two'])
    expect(await events({ stream: 'audit' })).toEqual(['three'])
    expect(await events({ function: 'a.b' })).toEqual(['one'])
    expect(await events({ since })).toEqual(['four'])
    expect(await events({ request, level: 'error' })).toEqual(['two'])
  })

  test('a page after a damaged or foreign cursor is rejected', async () => {
    opened = await openTestLogs()
    await write(0, 2)
    const { cursor } = (await opened.logs.page({}, 10)).items[0]!
    const flipped = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    const invalid = { code: 'PLATFORM_REQUEST_INVALID' }
    for (const after of [flipped, `logc_${'A'.repeat(32)}`]) {
      await expect(opened.logs.page({ after }, 10)).rejects.toMatchObject(invalid)
    }
    expect((await opened.logs.page({ after: cursor }, 10)).items).toHaveLength(1)
  })
})

test('records beyond the rate are dropped, and one record counts them', {
  tags: ['slow'],
}, async () => {
  opened = await openTestLogs()
  await write(0, LOG_RECORDS_PER_SECOND_MAX + 25)
  opened.system.advance(1_000)
  await opened.store.flushed()
  const { items } = await opened.logs.page({ level: 'warn' }, 10)
  expect(items).toMatchObject([{ event: 'log.dropped', fields: { dropped: 25, beyondRate: 25 } }])
})

test('lines without space in the queue are counted before their records are made', async () => {
  opened = await openTestLogs()
  const { store } = opened
  expect(store.admit(LOG_RECORDS_PER_SECOND_MAX + 7)).toBe(LOG_RECORDS_PER_SECOND_MAX)
  await write(0, LOG_RECORDS_PER_SECOND_MAX - 2)
  expect([store.admit(2), store.admit(5), store.admit(1)]).toEqual([2, 2, 1])
  await write(0, 2)
  expect(store.admit(4)).toBe(0)
  opened.system.advance(1_000)
  expect(store.admit(4)).toBe(4)
  await opened.store.flushed()
  const { items } = await opened.logs.page({ level: 'warn' }, 10)
  const counted = items.map(({ fields }) => [fields?.dropped, fields?.beyondRate])
  expect(counted.reduce((sum, [dropped]) => sum + Number(dropped), 0)).toBe(7 + 3 + 4)
  expect(counted.every(([dropped, beyondRate]) => dropped === beyondRate)).toBe(true)
})

describe('a stream', () => {
  async function lines(stream: AsyncGenerator<string>, count: number) {
    const found: { message?: string; cursor: string; heartbeat?: true }[] = []
    while (found.length < count) {
      const { value, done } = await stream.next()
      if (done) break
      found.push(
        ...value
          .trimEnd()
          .split('\n')
          .map((line: string) => JSON.parse(line)),
      )
    }
    return found
  }
  const never = new AbortController().signal

  test('a stream has each record once, from its start', async () => {
    opened = await openTestLogs()
    await write(0, 3)
    const stream = opened.logs.follow({}, async () => {}, never)
    expect(await lines(stream, 1)).toEqual([{ heartbeat: true, cursor: expect.any(String) }])
    await write(3, 4)
    expect((await lines(stream, 4)).map(({ message }) => message)).toEqual(numbered(3, 4))
    await stream.return(undefined)
    expect(opened.logs.followers).toBe(0)
  })

  test('a stream ends before the next page once its caller is not authorized', async () => {
    opened = await openTestLogs()
    let allowed = true
    const reauthorize = async () => {
      if (!allowed) throw new Error('revoked')
    }
    const stream = opened.logs.follow({}, reauthorize, never)
    await lines(stream, 1)
    await write(0, 2)
    expect(await lines(stream, 2)).toHaveLength(2)
    allowed = false
    await write(2, 2)
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })

  test('a stream ends at shutdown while it waits', async () => {
    opened = await openTestLogs()
    const stream = opened.logs.follow({}, async () => {}, never)
    await lines(stream, 1)
    const waiting = stream.next()
    opened.logs.endFollowers()
    expect((await waiting).done).toBe(true)
  })

  test('a stream has a heartbeat with the newest cursor after 15 s without a record', async () => {
    opened = await openTestLogs()
    const stream = opened.logs.follow({ level: 'error' }, async () => {}, never)
    await lines(stream, 1)
    await write(0, 1)
    opened.system.advance(HEARTBEAT_MILLIS)
    const [line] = await lines(stream, 1)
    const { items } = await opened.logs.page({}, 1)
    expect(line).toEqual({ heartbeat: true, cursor: items[0]!.cursor })
    await stream.return(undefined)
  })

  test('a stream beyond the maximum is unavailable', async () => {
    opened = await openTestLogs()
    const streams = Array.from({ length: LOG_FOLLOWERS_MAX }, () =>
      opened.logs.follow({}, async () => {}, never),
    )
    for (const stream of streams) await stream.next()
    expect(() => opened.logs.follow({}, async () => {}, never)).toThrow(
      expect.objectContaining({ code: 'PRODUCT_UNAVAILABLE' }),
    )
    for (const stream of streams) await stream.return(undefined)
  })
})

describe('the archive', () => {
  const HOUR = 3_600_000
  const prune = (apply: boolean, maximum = 1_000) =>
    opened.logs.prune({
      beforeMicros: String(opened.system.nowMicros()),
      maximum,
      apply,
      ...(apply && { environmentId: opened.logs.environmentId }),
    })

  async function writeSegments(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await write(i * 5, 5)
      opened.system.advance(HOUR)
      await opened.store.archive()
    }
  }
  const segments = () => readdirSync(join(opened.directory, 'logs')).toSorted()

  test('the archive closes a segment after its time or at its size', async () => {
    opened = await openTestLogs({ segmentBytesMax: 2_000 })
    await write(0, 3)
    await opened.store.archive()
    expect((await opened.logs.archiveStatus()).segments).toBe(0)
    await write(3, 60)
    await opened.store.archive()
    expect((await opened.logs.archiveStatus()).segments).toBe(1)
    opened.system.advance(HOUR)
    for (let i = 0; i < 20; i++) await opened.store.archive()
    const { frontier, newestCursor } = await opened.logs.archiveStatus()
    expect(frontier!.cursor).toBe(newestCursor)
    const archived = segments().flatMap((name) => {
      const text = Bun.zstdDecompressSync(readFileSync(join(opened.directory, 'logs', name)))
      const [, ...rest] = Buffer.from(text).toString().trimEnd().split('\n')
      return rest.map((line) => (JSON.parse(line) as { message: string }).message)
    })
    expect(archived).toEqual(numbered(0, 63))
  })

  test('only records behind the frontier of the archive are pruned', async () => {
    opened = await openTestLogs()
    await writeSegments(2)
    await write(10, 3)
    opened.system.advance(1)
    const { cursor } = (await opened.logs.page({}, 13)).items[0]!
    expect(await prune(false)).toMatchObject({ eligible: 10, pruned: 0, applied: false })
    expect(await prune(true, 4)).toMatchObject({ eligible: 4, pruned: 4, applied: true })
    expect(await prune(true)).toMatchObject({ eligible: 6, pruned: 6 })
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual(numbered(10, 3))
    // A cursor of a removed record continues at the oldest one left.
    expect(messages((await opened.logs.page({ after: cursor }, 100)).items)).toEqual(
      numbered(10, 3),
    )
    await opened.close()
    opened = await opened.reopen()
    await write(13, 1)
    expect(messages((await opened.logs.page({ after: cursor }, 100)).items)).toEqual(
      numbered(10, 4),
    )
  })

  test('a page has no next one if every record was pruned', async () => {
    opened = await openTestLogs()
    await writeSegments(1)
    const [{ cursor }] = (await opened.logs.page({}, 5)).items as [LogRecord]
    await prune(true)
    expect(await opened.logs.page({ after: cursor }, 5)).toEqual({ items: [], next: null })
  })

  test.each(['missing', 'damaged'])('a segment that is %s stops the pruning', async (how) => {
    opened = await openTestLogs()
    await writeSegments(3)
    const name = segments()[1]!
    const path = join(opened.directory, 'logs', name)
    const bytes = readFileSync(path)
    if (how === 'missing') rmSync(path)
    else writeFileSync(path, bytes.with(bytes.length >> 1, bytes[bytes.length >> 1]! ^ 1))
    expect(await prune(true)).toMatchObject({ eligible: 5, pruned: 5 })
    expect(opened.degraded).toEqual([`the segment ${name} is missing or damaged`])
    expect(await opened.logs.health()).toEqual({ name: 'logs', status: 'degraded' })
    expect(await prune(true)).toMatchObject({ eligible: 0, pruned: 0 })
    writeFileSync(path, bytes)
    expect(await prune(true)).toMatchObject({ eligible: 10, pruned: 10 })
    expect(await opened.logs.health()).toEqual({ name: 'logs', status: 'healthy' })
  })

  test('records are removed after their retention, once they are archived completely', async () => {
    const DAY = 24 * HOUR
    opened = await openTestLogs()
    await write(0, 5)
    opened.system.advance(DAY - 1)
    await opened.store.archive()
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual(numbered(0, 5))
    await write(5, 5)
    // The records of a segment are removed together.
    opened.system.advance(HOUR)
    await opened.store.archive()
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual(numbered(0, 10))
    opened.system.advance(2)
    await opened.store.archive()
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual(numbered(5, 5))
    opened.system.advance(DAY)
    const [first] = segments()
    await opened.store.archive()
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual([])
    expect((await opened.logs.archiveStatus()).segments).toBe(2)
    await write(10, 5)
    rmSync(join(opened.directory, 'logs', first!))
    opened.system.advance(2 * DAY)
    await opened.store.archive()
    expect(messages((await opened.logs.page({}, 100)).items)).toEqual(numbered(10, 5))
    expect(opened.degraded).toEqual([`the segment ${first} is missing or damaged`])
  })

  test('the log is pruned only for the exact Environment', async () => {
    opened = await openTestLogs()
    const request = { beforeMicros: '1', maximum: 1 }
    const invalid = { code: 'PLATFORM_REQUEST_INVALID' }
    await expect(opened.logs.prune({ ...request, apply: true })).rejects.toMatchObject(invalid)
    const environmentId = opened.system.ids.make('env')
    for (const apply of [true, false]) {
      const wrong = opened.logs.prune({ ...request, apply, environmentId })
      await expect(wrong).rejects.toMatchObject(invalid)
    }
  })
})

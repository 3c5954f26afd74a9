import { describe, expect, it } from 'vitest'
import { Fault } from '../errors/fault.ts'
import { TestSystem } from '../system/system.ts'
import type { LogLevel } from '../value/logs/log-levels.ts'
import { Secret } from '../value/secret.ts'
import { createLog, type LogOptions, memoryLog } from './log.ts'

function written(format: 'json' | 'human', options: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const system = new TestSystem({ millis: 1_800_000_000_123 })
  const log = createLog({ system, format, sink: (line) => lines.push(line), ...options })
  return { log, lines }
}

describe('a record', () => {
  it('a record is one line of JSON that begins with time, level, event and message', () => {
    const { log, lines } = written('json')
    log.info('server.started', { message: 'Serving.', requestId: 'req_1', durationMicros: 12n })
    expect(lines).toEqual([
      '{"at":"2027-01-15T08:00:00.123Z","level":"info","event":"server.started",' +
        '"message":"Serving.","requestId":"req_1","durationMicros":"12"}\n',
    ])
  })

  it('a record uses the event as its message if there is none, and omits undefined fields', () => {
    const { log, records } = memoryLog()
    log.warn('a.b', { releaseId: undefined, projectId: null })
    expect(Object.keys(records()[0]!)).toEqual(['at', 'level', 'event', 'message', 'projectId'])
    expect(records()[0]?.message).toBe('a.b')
  })

  it('a record keeps its reserved fields if a caller passes others', () => {
    const { log, records } = memoryLog()
    log.info('real', { at: 'never', level: 'error', event: 'forged' })
    expect(records()[0]).toMatchObject({ level: 'info', event: 'real' })
    expect(records()[0]?.at).not.toBe('never')
  })

  it('a record has the fields of its logger and then its own', () => {
    const { log, records } = memoryLog()
    log.with({ projectId: 'prj_1', requestId: 'req_1' }).with({ requestId: 'req_2' }).debug('x')
    expect(records()[0]).toMatchObject({ projectId: 'prj_1', requestId: 'req_2' })
  })

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['error', ['error']],
  ] as [LogLevel, LogLevel[]][])('is written from level %s up', (level, expected) => {
    const { log, lines } = written('json', { level })
    for (const name of ['debug', 'info', 'warn', 'error'] as const) log[name]('event')
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(expected)
  })
})

describe('redaction', () => {
  const canary = 'canary-0123456789'

  it.each(['json', 'human'] as const)('redaction removes a Secret at any depth (%s)', (format) => {
    const { log, lines } = written(format)
    const secret = new Secret(canary)
    const error = new Error('boom', { cause: secret })
    log.error('x', {
      secret,
      list: [secret],
      nested: { deep: { secret } },
      error,
      text: `${secret}`,
    })
    log.with({ secret }).info('y')
    expect(lines.join('')).not.toContain(canary)
    expect(lines.join('').match(/\[redacted\]/g)).toHaveLength(6)
  })

  it.each([
    'rk_at_v1_',
    'rk_rt_v1_',
    'rk_inv_v1_',
    'rk_pub_v1_',
    'rk_sec_v1_',
    'rk_dev_v1_',
    'rk_gst_v1_',
  ])('a credential %s is redacted by its form', (prefix) => {
    const { log, text } = memoryLog()
    const token = `${prefix}${canary}`
    log.info('x', {
      message: `before ${token} after`,
      path: `/a?b=${token}`,
      error: new Error(token),
    })
    log.info('y', { [token]: { [token]: [token] } })
    expect(text()).not.toContain(canary)
    expect(text()).toContain(`before ${prefix}[redacted] after`)
  })

  it('redaction removes a JWT', () => {
    const { log, text } = memoryLog()
    const part = Buffer.from(`{"sub":"${canary}"}`).toString('base64url')
    log.info('x', {
      message: `before ${part}.${part}.${part} after`,
      also: `Bearer ${part}.${part}.`,
    })
    expect(text()).not.toContain(part)
    expect(text()).toContain('before [redacted JWT] after')
    log.info('y', { message: 'eyJ.x and release.js:1.2.3 stay' })
    expect(text()).toContain('eyJ.x and release.js:1.2.3 stay')
  })

  it('redaction removes the user and password of a database URL', () => {
    const { log, text } = memoryLog()
    log.error('x', { error: new Error(`connect postgresql://user:${canary}@db.test/name failed`) })
    expect(text()).not.toContain(canary)
    expect(text()).toContain('postgresql://[redacted]@db.test/name')
  })

  it('redaction replaces bytes, functions and class instances by their type', () => {
    class Connection {
      readonly password = canary
    }
    const { log, records, text } = memoryLog()
    const bytes = new TextEncoder().encode(canary)
    log.info('x', {
      bytes,
      connection: new Connection(),
      call: () => canary,
      map: new Map([[1, canary]]),
    })
    expect(records()[0]).toMatchObject({
      bytes: `[${canary.length} bytes]`,
      connection: '[object]',
      call: '[function]',
      map: '[object]',
    })
    expect(text()).not.toContain(canary)
  })

  it('redaction omits the detail of a database error, and keeps its code', () => {
    const { log, records, text } = memoryLog()
    const error = Object.assign(new Error('duplicate key'), {
      code: '23505',
      detail: canary,
      where: canary,
    })
    log.error('x', { error })
    expect(records()[0]?.error).toMatchObject({ code: '23505', message: 'duplicate key' })
    expect(text()).not.toContain(canary)
  })

  it('redaction escapes control characters, which could forge a line or move the cursor', () => {
    const hostile = 'a\n{"level":"error"}\r\u001b[2J\u009b2J\u2028\u202e\u007f\ud800b'
    for (const format of ['json', 'human'] as const) {
      const { log, lines } = written(format)
      log.info(hostile, { message: hostile, [hostile]: hostile, list: [hostile], error: hostile })
      expect(lines).toHaveLength(1)
      expect(lines[0]!.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\ud800]/)
    }
  })
})

describe('an error', () => {
  it('an error that is a Fault is logged with code, detail, rules and causes', () => {
    const { log, records } = memoryLog()
    const cause = new Error('socket closed', { cause: new Error('reset') })
    const violations = [{ path: 'a.b', rule: 'a string' }]
    const error = new Fault('PLATFORM_UNAVAILABLE', { detail: 'no connection', cause, violations })
    log.error('x', { error })
    expect(records()[0]?.error).toMatchObject({
      name: 'Fault',
      code: 'PLATFORM_UNAVAILABLE',
      detail: 'no connection',
      violations,
      cause: { message: 'socket closed', cause: { message: 'reset' } },
    })
    expect(records()[0]?.error).toHaveProperty('stack', expect.stringContaining('log.test'))
  })

  it('an error that is its own cause is cut off', () => {
    const { log, records } = memoryLog()
    const error = new Error('loop')
    error.cause = error
    log.error('x', { error })
    expect(JSON.stringify(records())).toContain('[deep]')
  })

  it('an error can be any thrown value', () => {
    const { log, records } = memoryLog()
    for (const error of ['text', 1, null, undefined, Symbol('s'), [1]]) log.error('x', { error })
    expect(records().map((entry) => entry.error)).toEqual([
      'text',
      1,
      null,
      undefined,
      '[symbol]',
      [1],
    ])
  })
})

describe('logging', () => {
  it('logging never throws', () => {
    const { log, lines } = written('json')
    const hostile = {
      get boom(): string {
        throw new Fault('INTERNAL')
      },
    }
    log.info('x', hostile)
    log.info('x', { nested: hostile, proxy: new Proxy({}, { ownKeys: () => [1] as never }) })
    log.info('x', { message: 1n as unknown as string, number: Number.NaN })
    expect(lines).toHaveLength(1)
    const closed = written('json', {
      sink: () => {
        throw new Fault('INTERNAL')
      },
    })
    closed.log.error('x')
  })

  it('logging reports every record that it could not write', async () => {
    let dropped = 0
    let full = false
    const { log } = written('json', {
      sink: (_, onDropped) => {
        if (full) setTimeout(() => onDropped())
      },
      onDropped: () => {
        dropped += 1
      },
    })
    log.info('x')
    log.info('hostile', {
      get field() {
        throw new Fault('INTERNAL')
      },
    })
    full = true
    log.info('x')
    log.with({ requestId: 'req_x' }).error('x')
    log.debug('below the level')
    await expect.poll(() => dropped).toBe(3)
  })

  it('logging limits the length, number and depth of values', () => {
    const { log, lines } = written('json')
    const cycle: Record<string, unknown> = {}
    cycle.again = cycle
    const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]))
    log.info('x', { text: 'x'.repeat(1_000_000), cycle, wide, list: Array(1000).fill(0), ...wide })
    expect(lines[0]!.length).toBeLessThan(20_000)
    expect(lines[0]).toContain('[cut]')
    expect(lines[0]).toContain('[deep]')
  })
})

describe('the lines of a call', () => {
  const call = { stream: 'function', requestId: 'req_1', function: 'tasks.add' } as const
  const cases: readonly [message: string, data: unknown][] = [
    ['plain', undefined],
    ['with data', { amount: 3, nested: { list: [1, null, 'x'] } }],
    ['rk_sec_v1_secret \u2028 "quoted"', { rk_sec_v1_name: 'rk_sec_v1_value\u202e' }],
    ['x'.repeat(10_000), [[[[['deep']]]]]],
    ['', 'text'],
    ['null', null],
  ]

  it.each(['json', 'human'] as const)(
    'lines of a call are written in %s like single records',
    (format) => {
      const together = written(format)
      const single = written(format)
      const printed = cases.map(([message, data]) => {
        return {
          level: 'warn',
          message,
          data: data === undefined ? null : JSON.stringify(data),
        } as const
      })
      together.log.lines(call, printed)
      for (const [message, data] of cases)
        single.log.warn('function.log', { ...call, message, data })
      expect(together.lines).toEqual(single.lines)
      expect(together.lines.join('')).not.toContain('secret')
    },
  )

  it('a debug line has the level info, and data that are not JSON stay text', () => {
    const { log, lines } = written('json')
    log.lines({}, [{ level: 'debug', message: 'x', data: '{rk_sec_v1_secret' }])
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'info', lineLevel: 'debug', message: 'x', data: '{rk_sec_v1_[redacted]' },
    ])
  })

  it('the lines of a call are counted once each if they cannot be written', () => {
    let dropped = 0
    const line = { level: 'info', message: 'x', data: null } as const
    const { log } = written('json', {
      sink: () => {
        throw new Fault('INTERNAL')
      },
      onDropped: () => {
        dropped += 1
      },
    })
    log.lines(call, [line, line, line])
    expect(dropped).toBe(3)
  })
})

describe('the text format', () => {
  it('the text format aligns the level, quotes values with blanks and ends with the facts', () => {
    const { log, lines } = written('human')
    log.info('http.request', { message: 'Answered.', status: 200, path: '/a b', ok: true })
    expect(lines[0]).toBe(
      '2027-01-15T08:00:00.123Z info  http.request Answered. status=200 path="/a b" ok=true\n',
    )
  })

  it('the text format shows an error on further lines with its frames and causes', () => {
    const { log, lines } = written('human')
    const cause = new Fault('PLATFORM_UNAVAILABLE', { detail: 'pool is empty' })
    log.error('boot.failed', { error: new Error('boom', { cause }) })
    expect(lines[0]).toMatch(/^2027\S+ error boot\.failed\n {4}Error: boom\n {8}at /)
    expect(lines[0]).toContain('caused by\n    PLATFORM_UNAVAILABLE: ')
    expect(lines[0]).toContain(': pool is empty\n')
  })
})

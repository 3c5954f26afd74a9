/**
 * Strangers and broken services at the hooks of the compiled server: what they send has no effect,
 * holds no more than its budget, and leaves few records without a secret.
 *
 * @module-tag slow
 */
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Json, query } from '../application.ts'
import { argv } from '../argv.ts'
import { periodsSince } from '../log-periods.ts'
import { memoryMib, serverPid } from '../slow-peers/attacks.ts'
import { effects, untilHandled } from './campaign.ts'
import { deliver, deliverUntilAccepted, type Event } from './deliveries.ts'
import { chunked, exchange, openSocket, requestBytes, statusesOf } from './raw-requests.ts'
import { type HookedApplication, hookedApplication } from './workspace.ts'

const MIB = 1024 * 1024
const BUDGET_MIB = 128
/** A server that was idle has returned memory, and takes it again beside the budget. */
const SLACK_MIB = 160
/** The bound of every hook in these tests that is sent long bodies. */
const BODY_BYTES = 512 * 1024
const CHUNK_BYTES = 64 * 1024
/** Records of one code and one address in a minute. */
const RECORDS_MAX = 10

let application: HookedApplication
let origin = ''
beforeAll(async () => {
  application = await hookedApplication({ SERVICE_REQUEST_MEMORY_MIB: String(BUDGET_MIB) })
  origin = application.app.server.application!
})
afterAll(() => application?.app.installation.dispose())

let count = 0
const newEvent = (hook: Event['hook'] = 'digest'): Event => ({ hook, id: `evt_${++count}` })
const remote = () => argv`--remote --root ${application.app.installation.productRoot}`

/** Returns the records that the server has written about an address. */
function recordsOf(peer: string): readonly Json[] {
  const lines = application.app.server.lines.filter((line) => line.includes(`"peer":"${peer}"`))
  return lines.map((line) => JSON.parse(line))
}

/** Lets the peak of the memory start at what the process has; returns that, in MiB. */
function startPeak(pid: number): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return memoryMib(pid, 'VmRSS')
}

async function accepts(): Promise<void> {
  const answer = await deliver(application, newEvent())
  expect(answer).toMatchObject({ status: 202 })
}

describe('a request that two programs could read differently', () => {
  /** A second request, which must not be read where the first one is rejected. */
  const hidden = (id = 'hidden') => {
    const body = JSON.stringify({ id })
    return requestBytes(`${application.path}/open`, [`Content-Length: ${body.length}`], body)
  }
  const withLength = (of: string) => `Content-Length: ${of.length}`
  const post = (lines: readonly string[], body: string) => {
    return requestBytes(`${application.path}/open`, lines, body)
  }
  const SHAPES: Readonly<Record<string, (next: string) => string>> = {
    'a length and chunks': (next) =>
      post([withLength(`0\r\n\r\n${next}`), 'Transfer-Encoding: chunked'], `0\r\n\r\n${next}`),
    'chunks and a length': (next) =>
      post(['Transfer-Encoding: chunked', 'Content-Length: 4'], chunked(next)),
    'two lengths': (next) => post(['Content-Length: 0', withLength(next)], next),
    'a list of lengths': (next) => post([`Content-Length: 0, ${next.length}`], next),
    'a length with a sign': (next) => post(['Content-Length: +0'], next),
    'a length below zero': (next) => post(['Content-Length: -1'], next),
    'a hexadecimal length': (next) => post(['Content-Length: 0x0'], next),
    'a length beyond all numbers': (next) => post([`Content-Length: ${'9'.repeat(30)}`], next),
    'a space before the colon of a length': (next) => post(['Content-Length : 0'], next),
    'a space before the colon of an encoding': (next) =>
      post(['Transfer-Encoding : chunked'], chunked('{}') + next),
    'the encoding identity': (next) => post(['Transfer-Encoding: identity'], next),
    'an unknown encoding': (next) => post(['Transfer-Encoding: xchunked'], chunked(next)),
    'an encoding behind chunks': (next) =>
      post(['Transfer-Encoding: chunked, identity'], chunked('{}') + next),
    'two encodings': (next) =>
      post(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked('{}') + next),
    'a folded line': (next) => post(['X-A: b', ' Content-Length: 9', 'Content-Length: 0'], next),
    'a folded encoding': (next) => post(['Transfer-Encoding:', ' chunked'], chunked('{}') + next),
    'a line that ends with CR': (next) => post(['X-A: b\rContent-Length: 0'], next),
    'a NUL in a line': (next) => post(['X-A: b\0', 'Content-Length: 0'], next),
    'lines that end with LF': (next) => post([], '').replaceAll('\r\n', '\n') + next,
    'a chunk without a size': (next) => post(['Transfer-Encoding: chunked'], `zz\r\n${next}`),
    'a chunk beyond all numbers': (next) =>
      post(['Transfer-Encoding: chunked'], `${'f'.repeat(18)}\r\n${next}`),
    'a chunk below zero': (next) =>
      post(['Transfer-Encoding: chunked'], `-1\r\n{}\r\n0\r\n${next}`),
    'a chunk that ends with LF': (next) =>
      post(['Transfer-Encoding: chunked'], `2\n{}\n0\n\n${next}`),
    'chunks of HTTP 1.0': (next) =>
      post(['Transfer-Encoding: chunked'], chunked('{}')).replace('1.1', '1.0') + next,
    'no host': (next) => post(['Content-Length: 0'], next).replace('Host: x\r\n', ''),
  }

  test.each(Object.keys(SHAPES))('a request with %s is rejected whole', async (shape) => {
    const text = await exchange(origin, SHAPES[shape]!(hidden()))
    expect(statusesOf(text)).toHaveLength(1)
    expect(statusesOf(text)[0]).toBeOneOf([400, 505])
  })

  test('the hidden request is accepted where it is sent alone', async () => {
    const seen = hidden('alone').replace('Host: x', 'Host: x\r\nConnection: close')
    expect(statusesOf(await exchange(origin, seen))).toEqual([202])
    const body = JSON.stringify({ id: 'chunks' })
    const lines = ['Transfer-Encoding: chunked', 'Connection: close']
    expect(statusesOf(await exchange(origin, post(lines, chunked(body))))).toEqual([202])
    await untilHandled(application)
    const found = await effects(application)
    expect([found.get('alone'), found.get('chunks')]).toEqual([1, 1])
    expect(found.has('hidden')).toBe(false)
  })
})

describe('the bounds of a request', () => {
  test.each([
    ['lines', () => Array.from({ length: 300 }, (_, i) => `X-${i}: a`)],
    ['characters', () => [`X-A: ${'a'.repeat(100_000)}`]],
  ])('a head with too many %s is 431', async (_, lines) => {
    const head = requestBytes(`${application.path}/open`, [...lines(), 'Content-Length: 0'])
    expect(statusesOf(await exchange(origin, head))).toEqual([431])
  })

  test('a body beyond the bound of the hook is rejected before it is sent', async () => {
    const lines = [`Content-Length: ${BODY_BYTES + 1}`, 'Connection: close']
    const text = await exchange(origin, requestBytes(`${application.path}/open`, lines))
    expect(statusesOf(text)).toEqual([413])
    expect(text).toContain('"code":"LIMIT_EXCEEDED"')
  })

  test('a body without an end is rejected at the bound of the hook', async () => {
    const socket = openSocket(origin)
    onTestFinished(() => void socket.destroy())
    const answer = once(socket, 'data')
    socket.write(requestBytes(`${application.path}/open`, ['Transfer-Encoding: chunked']))
    // One chunk beyond the bound: a client that still sends may lose the answer to a reset.
    const chunk = chunked('x'.repeat(CHUNK_BYTES)).slice(0, -'0\r\n\r\n'.length)
    socket.write(chunk.repeat(BODY_BYTES / CHUNK_BYTES + 1))
    const [bytes] = await answer
    expect(statusesOf(String(bytes))).toEqual([413])
  })

  test.each([
    ['with an encoded slash at its end', '/open%2f'],
    ['with an encoded slash behind dots', '/..%2fopen'],
    ['with encoded slashes around dots', '/x%2f..%2fopen'],
    ['with an empty segment', '//open'],
    ['with a parameter of a segment', '/open;x'],
    ['with a backslash', '/open\\x'],
    ['with an encoded NUL', '/open%00'],
    ['with a byte that is no text', '/open%ff'],
    ['of many characters', `/${'a'.repeat(8_000)}`],
    ['that leaves the mount', '/../../other/open'],
    ['that leaves the mount by encoded dots', '/%2e%2e/%2e%2e/other/open'],
  ])('a path %s is unknown', async (_, path) => {
    const lines = ['Content-Length: 0', 'Connection: close']
    const text = await exchange(origin, requestBytes(application.path + path, lines))
    expect(statusesOf(text)).toEqual([404])
    expect(text.split('\r\n\r\n')[1]).toBe('')
  })

  test('no spelling of a path goes around the secret part of it', async () => {
    const [mount] = /^\/v1\/http\/[^/]+/.exec(application.path)!
    for (const path of [
      '/open',
      '//open',
      '/%2e/open',
      '/x/../open',
      '/x/%2e%2e/open',
      '/%2fopen',
    ]) {
      const lines = ['Content-Length: 0', 'Connection: close']
      const text = await exchange(origin, requestBytes(mount + path, lines))
      expect(statusesOf(text), path).toEqual([404])
    }
  })
})

describe('services that send slowly', () => {
  test('a body that stops is 503, however long it is', async () => {
    const stopped = [10_000, 100_000].map(async (length) => {
      const lines = [`Content-Length: ${length}`, 'Connection: close']
      const body = ' '.repeat(length - 1)
      return exchange(origin, requestBytes(`${application.path}/digest`, lines, body))
    })
    for (const text of await Promise.all(stopped)) {
      expect(statusesOf(text)).toEqual([503])
      expect(text).toContain('"code":"BUSY"')
      expect(text).toMatch(/^retry-after: \d+/im)
    }
  })

  test('unfinished bodies of strangers hold their budget and nothing else', async () => {
    const pid = serverPid(application.app)
    const files = () => readdirSync(`/proc/${pid}/fd`).length
    const filesBefore = files()
    const mibBefore = startPeak(pid)
    const length = 256 * 1024
    const head = [`Content-Length: ${length}`]
    const bytes = requestBytes(`${application.path}/digest`, head, ' '.repeat(length - 1))
    const sockets = Array.from({ length: 2 * ((BUDGET_MIB * MIB) / length) }, () => {
      const socket = openSocket(origin)
      socket.write(bytes)
      return socket
    })
    // The budget is exhausted as soon as one of them is rejected.
    const [rejected] = await Promise.race(sockets.map((socket) => once(socket, 'data')))
    expect(statusesOf(String(rejected))).toEqual([503])
    // Neither the rate of the mount nor a permit is taken: services and callers are answered.
    await accepts()
    const called = await query(application.app, { function: 'channels.list' })
    expect(called.status).toBe(200)
    expect(memoryMib(pid, 'VmHWM') - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + SLACK_MIB)
    for (const socket of sockets) socket.destroy()
    await expect.poll(files, { timeout: 60_000 }).toBeLessThan(filesBefore + 32)
    await untilHandled(application)
  })
})

describe('floods', () => {
  const post = async (
    path: string,
    { peer, body = '{}', headers = {} }: { peer: string; body?: string; headers?: object },
  ): Promise<number> => {
    const response = await fetch(origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': peer, ...headers },
      body,
    })
    if (response.status === 429) {
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    await response.arrayBuffer()
    return response.status
  }
  let periods = () => 1
  beforeEach(() => {
    periods = periodsSince(application.app)
  })
  const bounded = async (peer: string, reason: string | null) => {
    await expect.poll(() => recordsOf(peer).length, { timeout: 60_000 }).toBeGreaterThan(0)
    const records = recordsOf(peer)
    const codes = Map.groupBy(records, ({ errorCode }) => errorCode)
    for (const [, { length }] of codes) {
      expect(length).toBeLessThanOrEqual(periods() * RECORDS_MAX)
    }
    for (const { event } of records) {
      expect(event).toBeOneOf(['request.rejected', 'request.rejections_suppressed'])
    }
    if (reason !== null) expect(JSON.stringify(records)).toContain(reason)
  }

  test('bad signatures from one address are 401, then 429, and few records', async () => {
    const peer = '198.51.100.10'
    const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    const before = await effects(application)
    const sending = Array.from({ length: 100 }, () => {
      return post(`${application.path}/digest`, { peer, headers })
    })
    const statuses = new Set(await Promise.all(sending))
    expect([...statuses].toSorted()).toEqual([401, 429])
    await bounded(peer, 'the signature does not match')
    // A service at another address is not affected.
    expect(await deliverUntilAccepted(application, newEvent())).toMatch(/^sch_/)
    await untilHandled(application)
    expect((await effects(application)).size).toBe(before.size + 1)
  })

  test('unknown mounts and secret parts are 404, and few records', async () => {
    const peer = '198.51.100.11'
    const [mount] = /^\/v1\/http\/[^/]+/.exec(application.path)!
    for (let i = 0; i < 60; i++) {
      expect(await post('/v1/http/unknown/open', { peer })).toBe(404)
      expect(await post(`${mount}/hkt_${'A'.repeat(43)}/open`, { peer })).toBe(404)
    }
    await bounded(peer, null)
  })

  test('deliveries beyond the rate of a mount are 429, and those before are handled', async () => {
    const peer = '198.51.100.12'
    const { app } = application
    const slow = await app.svc(argv`
      http mount slow --target channel:production --secret-path --rate 1 ${remote()}
    `)
    const limited = { ...application, path: `${slow.path}/${slow.token}` }
    const accepted: string[] = []
    let rejected = 0
    for (let i = 0; i < 60; i++) {
      const id = `evt_limited_${i}`
      const status = await post(`${limited.path}/open`, { peer, body: JSON.stringify({ id }) })
      if (status === 202) accepted.push(id)
      else rejected += status === 429 ? 1 : 0
    }
    expect(accepted.length + rejected).toBe(60)
    expect([accepted.length, rejected]).toEqual([
      expect.toSatisfy((n) => n >= 10),
      expect.toSatisfy((n) => n > 0),
    ])
    await bounded(peer, 'the mount slow')
    await accepts()
    await untilHandled(application)
    const found = await effects(application)
    for (const id of accepted) expect(found.get(id)).toBe(1)
  })

  test('a stranger at an open hook costs its rate, and no memory beyond the budgets', async () => {
    const peer = '198.51.100.13'
    const { app } = application
    const open = await app.svc(argv`
      http mount open --target channel:production ${remote()}
    `)
    const pid = serverPid(app)
    const mibBefore = startPeak(pid)
    const begun = performance.now()
    const send = async (i: number) => {
      const body = JSON.stringify({ id: `evt_long_${i}`, text: 'x'.repeat(BODY_BYTES - 100) })
      return post(`${open.path}/open`, { peer, body })
    }
    const statuses = (
      await Promise.all(
        Array.from({ length: 8 }, async (_, sender) => {
          const own: number[] = []
          for (let i = 0; i < 50; i++) own.push(await send(sender * 50 + i))
          return own
        }),
      )
    ).flat()
    const seconds = (performance.now() - begun) / 1_000
    const accepted = statuses.filter((status) => status === 202).length
    expect(accepted).toBeGreaterThan(0)
    expect(accepted).toBeLessThanOrEqual(16 + Math.ceil(2 * seconds))
    for (const status of statuses) expect(status).toBeOneOf([202, 429, 503])
    expect(memoryMib(pid, 'VmHWM') - mibBefore).toBeLessThanOrEqual(BUDGET_MIB + 2 * SLACK_MIB)
    await bounded(peer, null)
    await untilHandled(application)
    await accepts()
  })

  test('no record has a secret', async () => {
    const { path, secrets, app } = application
    const token = path.slice(path.lastIndexOf('/') + 1)
    const text = app.server.lines.join('\n')
    expect(text).toContain('request.rejected')
    for (const secret of [token, ...Object.values(secrets)]) expect(text).not.toContain(secret)
  })
})

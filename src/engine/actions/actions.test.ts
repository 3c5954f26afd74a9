/** Actions in real runners: their calls, their requests and their outcomes. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import { killRunners } from '../../../testing/runners.ts'
import { parseNetwork } from '../../system/address-ranges.ts'

const SCHEMA = `tables({ notes: { fields: { n: { type: 'int64' } }, indexes: [] } })`
const allowedNetworks = ['127.0.0.0/8', '::1/128'].map((text) => parseNetwork(text)!)

let bench: EngineBench
let server: Server
let origin = ''
let seen: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = []
let closed = 0
let large = Promise.withResolvers<void>()

const answer: RequestListener = async (request, response) => {
  const { method = '', url = '', headers } = request
  let body = ''
  for await (const chunk of request) body += chunk
  seen.push({ method, url, headers, body })
  response.on('close', () => {
    if (!response.writableFinished) closed += 1
  })
  if (url === '/slow') return
  if (url === '/large') {
    await large.promise
    response.end(Buffer.alloc(4_000_000))
    return
  }
  if (url === '/largest') {
    response.writeHead(999).end(Buffer.alloc(16 * 1024 * 1024, 'x'))
    return
  }
  if (url === '/half') {
    response.writeHead(200, { 'content-length': 9 }).write('half')
    setTimeout(() => response.destroy(), 20)
    return
  }
  if (url === '/hop') response.writeHead(302, { location: '/there' }).end()
  else if (url === '/away') response.writeHead(307, { location: 'http://else.test/x' }).end()
  else response.writeHead(201, { 'x-a': 'b', 'content-type': 'application/json' }).end('{"ok":[1]}')
}

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://local.test:${(server.address() as AddressInfo).port}`
  const host = new URL(origin).host
  const network = {
    resolve: async () => [{ address: '127.0.0.1' }],
    dial: (address: string, port: number) => ({ host: address, port }),
  }
  const uses = `uses: { network: ['${host}', 'refused.test:1'], secrets: [] }`
  bench = await engineBench(functionsOf(uses), {
    schema: SCHEMA,
    outbound: { allowedNetworks, network },
    limits: { actionCpuMillis: 1_000 },
  })
})
afterAll(async () => {
  await bench.close()
  server.closeAllConnections()
  server.close()
})

const functionsOf = (uses: string) => `
  add: mutation((ctx, { n }) => ctx.db.insert('notes', { n }), {
    arguments: { n: { type: 'int64' } },
  }),
  all: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).map((it) => it.n)),
  full: mutation((ctx) => ctx.fail('FULL'), { errors: { FULL: 'conflict' } }),
  calls: action(async (ctx) => {
    await ctx.runMutation(ref('mutation', 'add'), { n: 1n })
    const seen = await ctx.runQuery(ref('query', 'all'))
    const inner = await ctx.runAction(ref('action', 'inner'), { n: 2n })
    return [seen, inner, (await ctx.usage()).calls.used]
  }),
  inner: action(async (ctx, { n }) => {
    await ctx.runMutation(ref('mutation', 'add'), { n })
    return await ctx.runQuery(ref('query', 'all'))
  }, { arguments: { n: { type: 'int64' } } }),
  half: action(async (ctx) => {
    await ctx.runMutation(ref('mutation', 'add'), { n: 5n })
    throw new Error('then it failed')
  }),
  catches: action(async (ctx) => {
    try { await ctx.runMutation(ref('mutation', 'full')) } catch (error) { return error.code }
  }),
  bubbles: action((ctx) => ctx.runMutation(ref('mutation', 'full'))),
  reads: action((ctx) => ctx.db.table('notes')),
  forgets: action(async (ctx) => { ctx.runMutation(ref('mutation', 'add'), { n: 7n }) }),
  get: action(async (ctx, { url, init }) => {
    const response = await fetch(url, init)
    const { status, ok, redirected, headers } = response
    return [status, ok, redirected, headers.get('x-a'), response.url, await response.json()]
  }, { arguments: { url: { type: 'string' }, init: { type: 'any' } }, ${uses} }),
  posts: action(async (ctx, { url }) => {
    const body = new URLSearchParams({ a: 'b c' })
    await fetch(new Request(url, { method: 'POST', body, headers: { 'X-Own': 'y', Host: 'no' } }))
    await fetch(url, { method: 'PUT', body: new Uint8Array([104, 105]) })
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  takes: action(async (ctx, { url }) => {
    const response = await fetch(url)
    return [response.status, response.ok, (await response.clone().text()).length]
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  sends: action(async (ctx, { url }) => {
    await fetch(url, { method: 'POST', body: new Uint8Array(8 * 1024 * 1024) })
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  long: action(async (ctx, { part }) => {
    const body = new Uint8Array(8 * 1024 * 1024)
    const long = 'é'.repeat(part === 'URL' ? 500_000 : 17_000_000)
    const init = { method: 'POST', body, headers: { 'X-Long': part === 'URL' ? '' : long } }
    await fetch('https://a.test/' + (part === 'URL' ? long : ''), init)
  }, { arguments: { part: { type: 'string' } }, ${uses} }),
  undeclared: action((ctx, { url }) => fetch(url), { arguments: { url: { type: 'string' } } }),
  failed: action(async (ctx, { url }) => {
    try { await fetch(url) } catch (error) { return error.name + ': ' + error.message }
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  aborts: action(async (ctx, { url }) => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 50)
    try { await fetch(url, { signal: controller.signal }) } catch (error) { return error.name }
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  timesOut: action(async (ctx, { url }) => {
    const signal = AbortSignal.timeout(50)
    try { await fetch(url, { signal }) } catch (error) { return error.name }
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  aborted: action(async (ctx, { url }) => {
    const controller = new AbortController()
    const { signal } = controller
    signal.addEventListener('abort', () => { throw new Error('second') })
    signal.onabort = () => { throw new Error('first') }
    const request = fetch(url, { signal }).catch((error) => error.name)
    try { controller.abort() } catch (error) { return [error.message, await request] }
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  timeouts: action(async () => {
    const signals = Array.from({ length: 5_000 }, () => AbortSignal.timeout(60_000))
    await new Promise((resolve) => AbortSignal.timeout(1).addEventListener('abort', resolve))
    let timers = 0
    try { for (;; timers++) setTimeout(() => {}, 60_000) } catch { return [signals.length, timers] }
  }),
  watched: action(async () => {
    const signal = AbortSignal.timeout(200_000)
    const watchdog = setTimeout(() => {}, 100_000)
    let sleeps = 0
    for (; sleeps < 1_040 && !signal.aborted; sleeps++) await new Promise((r) => setTimeout(r))
    clearTimeout(watchdog)
    return sleeps
  }),
  raced: action(async (ctx, { url }) => {
    const late = new Promise((resolve) => setTimeout(resolve, 50, 'late'))
    return await Promise.race([fetch(url), late])
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  four: action(async (ctx, { url }) => {
    await Promise.all([1, 2, 3, 4].map(() => fetch(url)))
  }, { arguments: { url: { type: 'string' } }, ${uses} }),
  timers: action(async () => {
    const order = []
    const from = Date.now()
    const never = setTimeout(() => order.push('never'), 30)
    setTimeout(() => order.push('c'), 60)
    setTimeout((x) => order.push(x), 20, 'a')
    let ticks = 0
    await new Promise((resolve) => {
      const id = setInterval(() => { if (++ticks === 4) { clearInterval(id); resolve() } }, 25)
      setTimeout(() => { order.push('b'); clearTimeout(never) }, 20)
    })
    return [order.join(''), Date.now() - from >= 95, ticks]
  }),
  late: action(() => {
    setTimeout(() => { throw new RangeError('in a timer') }, 1)
    return new Promise(() => {})
  }),
  waits: action(() => new Promise((resolve) => setTimeout(resolve, 500_000))),
  spins: action(() => { for (;;); }),
  random: action(() => [Math.random(), crypto.randomUUID()]),
  here: query(() => [typeof fetch, typeof setTimeout, typeof AbortController, typeof Headers]),
  fetches: mutation(async () => { await fetch('https://x.test') }),
`

async function failureOf(name: string, input = {}): Promise<Record<string, unknown>> {
  try {
    return { result: await bench.call(name, input) }
  } catch (error) {
    return error as Record<string, unknown>
  }
}

describe('an Action', () => {
  test('calls Queries, Mutations and Actions, each an invocation of its own', async () => {
    expect(await bench.call('calls')).toEqual([[1n], [1n, 2n], 3])
    expect(await failureOf('half')).toMatchObject({ code: 'FUNCTION_FAILED' })
    expect(await bench.call('all')).toEqual([1n, 2n, 5n])
  })

  test('an Action may catch the declared code of a called Function or fails with it', async () => {
    expect(await bench.call('catches')).toBe('FULL')
    expect(await failureOf('bubbles')).toMatchObject({ code: 'APP_FULL', status: 409 })
  })

  test('fails with messages that name its mistakes', async () => {
    expect(await failureOf('reads')).toMatchObject({
      detail: 'TypeError: ctx.db in an Action: use ctx.runQuery and ctx.runMutation',
    })
    expect(await failureOf('forgets')).toMatchObject({
      detail: 'Error: ctx.runMutation was not awaited: write "await" in front of it',
    })
    expect(await failureOf('fetches')).toMatchObject({
      detail: expect.stringContaining('Queries and Mutations reach no network; do it in an Action'),
    })
    expect(await bench.call('here')).toEqual(['undefined', 'undefined', 'function', 'function'])
  })

  test('runs timers in the order of their due times, and reads the current time', async () => {
    expect(await bench.call('timers')).toEqual(['abc', true, 4])
    expect(await failureOf('late')).toMatchObject({ detail: 'RangeError: in a timer' })
  })

  test('an Action has 1,024 timers in addition to those of its signals', async () => {
    expect(await bench.call('timeouts')).toEqual([5_000, 1_024])
  })

  test('an Action may sleep any number of times beside a long timer and signal', {
    tags: ['slow'],
  }, async () => {
    expect(await bench.call('watched')).toBe(1_040)
  })

  test('draws different random numbers in each run', async () => {
    expect(await bench.call('random')).not.toEqual(await bench.call('random'))
  })

  test('an Action that exceeds its CPU limit is stopped while Queries succeed', {
    tags: ['slow'],
  }, async () => {
    const spinning = failureOf('spins')
    const query = bench.call('all').then(() => 'returned')
    expect(await Promise.race([spinning, query])).toBe('returned')
    expect(await spinning).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      detail: 'cpu: at most 60000 ms',
    })
  })

  test('stops when its caller disconnects', async () => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 50)
    // Without the abort it would wait longer than the time bound of a test.
    await expect(bench.call('waits', {}, { signal: abort.signal })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
  })
})

describe('fetch', () => {
  test('sends the request and returns the whole response', async () => {
    seen = []
    const init = new Map([['headers', new Map([['X-Q', 'é']])]])
    expect(await bench.call('get', { url: `${origin}/p?q=1#h`, init })).toEqual([
      201,
      true,
      false,
      'b',
      `${origin}/p?q=1`,
      new Map([['ok', [1]]]),
    ])
    expect(seen).toMatchObject([{ method: 'GET', url: '/p?q=1', headers: { 'x-q': 'é' } }])
    expect(seen[0]!.headers.host).toBe(new URL(origin).host)
    await bench.call('posts', { url: origin })
    expect(seen.slice(1)).toMatchObject([
      {
        method: 'POST',
        body: 'a=b+c',
        headers: {
          'x-own': 'y',
          'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
          host: new URL(origin).host,
        },
      },
      { method: 'PUT', body: 'hi' },
    ])
  })

  test('follows a redirect to a host that the Action declares, and to no other', async () => {
    const init = null
    expect(await bench.call('get', { url: `${origin}/hop`, init })).toMatchObject([
      201,
      true,
      true,
      'b',
      `${origin}/there`,
      {},
    ])
    const before = seen.length
    expect(await bench.call('failed', { url: `${origin}/away` })).toContain('uses.network')
    expect(seen.slice(before).map(({ url }) => url)).toEqual(['/away'])
  })

  test('reaches no host that the Action does not declare', async () => {
    const before = seen.length
    expect(await failureOf('undeclared', { url: origin })).toMatchObject({
      detail: expect.stringContaining('is not in uses.network of this Action'),
    })
    expect(await bench.call('failed', { url: 'http://127.0.0.1/' })).toContain('uses.network')
    expect(await bench.call('failed', { url: 'ftp://x/' })).toContain('https://host/path')
    expect(await bench.call('failed', { url: 'http://refused.test:1' })).toBe(
      'TypeError: fetch: "refused.test:1" cannot be reached, or breaks off (ECONNREFUSED)',
    )
    expect(seen.length).toBe(before)
  })

  test('sends and receives as much as the bounds allow in a new runner', {
    tags: ['slow'],
  }, async () => {
    for (let i = 0; i < 2; i++) {
      bench.pool.forget(bench.release.releaseId)
      expect(await bench.call('takes', { url: `${origin}/largest` })).toEqual([999, false, 2 ** 24])
    }
    bench.pool.forget(bench.release.releaseId)
    expect(await bench.call('sends', { url: origin })).toBeNull()
  })

  test.each(['URL', 'header'])('throws a RangeError for a %s that is too long', async (part) => {
    expect(await failureOf('long', { part })).toMatchObject({
      detail: expect.stringMatching(
        /^RangeError: fetch: URL and headers have \d+ characters, at most/,
      ),
    })
  })

  test('throws where a response breaks off', async () => {
    const { host } = new URL(origin)
    expect(await bench.call('failed', { url: `${origin}/half` })).toBe(
      `TypeError: fetch: "${host}" cannot be reached, or breaks off (ECONNRESET)`,
    )
  })

  test('counts replies that its runner does not read', { tags: ['slow'] }, async () => {
    seen = []
    large = Promise.withResolvers()
    const failure = failureOf('four', { url: `${origin}/large` })
    await expect.poll(() => seen.length).toBe(4)
    killRunners('SIGSTOP')
    large.resolve()
    await expect.poll(() => bench.pool.actionBacklogBytes()).toBeGreaterThan(16_000_000)
    killRunners()
    expect(await failure).toMatchObject({ code: 'UNAVAILABLE' })
    expect(bench.pool.actionBacklogBytes()).toBe(0)
  })

  test('closes its connection when its signal, its timeout or its Action ends', async () => {
    ;[seen, closed] = [[], 0]
    expect(await bench.call('aborts', { url: `${origin}/slow` })).toBe('AbortError')
    expect(await bench.call('timesOut', { url: `${origin}/slow` })).toBe('TimeoutError')
    expect(await bench.call('raced', { url: `${origin}/slow` })).toBe('late')
    // A request that ended before it was sent has no connection.
    await expect.poll(() => seen.length - closed).toBe(0)
  })

  test('ends with its signal even if another listener throws', async () => {
    expect(await bench.call('aborted', { url: `${origin}/slow` })).toEqual(['first', 'AbortError'])
  })
})

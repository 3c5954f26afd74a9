import { request } from 'node:http'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { Ran, TestClient } from '../../../../testing/client/test-client.ts'
import { freePort } from '../../../../testing/servers/ports.ts'

const TEXT = '# TYPE svc_commits_total counter\nsvc_commits_total 7\n'
const TYPE = 'text/plain; version=0.0.4; charset=utf-8'

let server: FakeServer
let client: TestClient
let port: number
let command: Promise<Ran>

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  answerWith(TEXT)
  port = await freePort()
})

afterEach(() => {
  client.interrupt()
})

/** Answers requests of the metrics with the right token; all others as always. */
function answerWith(text: string) {
  server.intercept = ({ path, headers }) => {
    if (path !== `${server.base}/metrics`) return null
    if (headers.authorization !== `Bearer ${server.accessToken}`) {
      return failure('PLATFORM_AUTHENTICATION_FAILED')
    }
    return { status: 200, text, headers: { 'content-type': TYPE } }
  }
}

async function start() {
  command = client.run('metrics', '--remote', '--root', 'root', '--listen', `127.0.0.1:${port}`)
  const deadline = Date.now() + 60_000
  for (;;) {
    try {
      await scrape({ path: '/' })
      return
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

interface Scraped {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly text: string
}

function scrape({ method = 'GET', path = '/metrics', host = `127.0.0.1:${port}` } = {}) {
  return new Promise<Scraped>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers: { host } }, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      reply.on('end', () => {
        resolve({ status: reply.statusCode, type: reply.headers['content-type'], text })
      })
    })
    sent.once('error', reject).end()
  })
}

it('serves the metrics of the server and the end of its own session', async () => {
  await start()
  const { status, type, text } = await scrape()
  expect([status, type]).toEqual([200, TYPE])
  expect(text.startsWith(TEXT)).toBe(true)
  const [, ends] = /\nsvc_exporter_session_end_time_seconds ([0-9]+)\n$/.exec(text) ?? []
  expect(Number(ends)).toBeGreaterThan(Date.now() / 1000)
  const [asked] = server.requestsTo('GET', `${server.base}/metrics`)
  expect(asked!.headers.accept).toBe('text/plain; version=0.0.4')
  expect(text).not.toContain(server.accessToken)
})

it('renews the access token and continues', async () => {
  await start()
  expect((await scrape()).status).toBe(200)
  const first = server.generation
  server.expireAccess()
  expect((await scrape()).status).toBe(200)
  expect(server.generation).toBe(first + 1)
})

it('takes over the session of a later login', async () => {
  await start()
  expect((await client.login(server)).exit).toBe(0)
  expect((await scrape()).status).toBe(200)
})

it('answers 503 with the code while the server fails, and reports that once', async () => {
  await start()
  server.intercept = () => failure('PLATFORM_ACCESS_DENIED')
  const errors: string[] = []
  client.onError = (text) => void errors.push(text)
  for (let i = 0; i < 2; i++) {
    expect(await scrape()).toMatchObject({ status: 503, text: 'PLATFORM_ACCESS_DENIED\n' })
  }
  expect(errors.join('').match(/PLATFORM_ACCESS_DENIED/g)).toHaveLength(1)
  answerWith(TEXT)
  expect((await scrape()).status).toBe(200)
  expect(errors.at(-1)).toBe('The server answers again.\n')
})

it('answers neither other hosts, nor other paths, nor other methods', async () => {
  await start()
  const rejected = [{ host: 'rebound.example.com' }, { path: '/' }, { method: 'POST' }]
  const statuses = await Promise.all(rejected.map(async (each) => (await scrape(each)).status))
  expect(statuses).toEqual([421, 404, 405])
  expect((await scrape({ host: `localhost:${port}` })).status).toBe(200)
  expect(server.requestsTo('GET', `${server.base}/metrics`)).toHaveLength(1)
})

it('closes the address on an interrupt and ends with 0', async () => {
  await start()
  client.interrupt()
  expect(await command).toMatchObject({
    exit: 0,
    out: expect.stringContaining(`Serving the metrics at http://127.0.0.1:${port}/metrics.`),
  })
  await expect(scrape()).rejects.toThrow()
})

it.each(['0.0.0.0:9464', 'localhost:9464', '127.0.0.1', '127.0.0.1:65536', '9464'])(
  'the exporter does not open %s',
  async (address) => {
    const line = ['metrics', '--remote', '--root', 'root', '--listen', address]
    expect((await client.run(...line)).exit).toBe(2)
  },
)

it('ends with 2 where the port is in use', async () => {
  const used = new URL(server.origin).host
  const { exit, err } = await client.run('metrics', '--root', 'root', '--listen', used)
  expect([exit, err]).toEqual([2, expect.stringContaining('EADDRINUSE')])
})

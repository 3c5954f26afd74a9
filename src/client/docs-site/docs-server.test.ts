import { request } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DocsServer } from './docs-server.ts'

const FILES: Readonly<Record<string, string>> = {
  'index.html': '<p>“one”</p>',
  'contract/wire.html': 'two',
}

let server: DocsServer
let port: number

beforeEach(async () => {
  const file = (path: string) =>
    Object.hasOwn(FILES, path) ? { type: 'text/html; charset=utf-8', text: FILES[path]! } : null
  server = await DocsServer.open({ file }, 0)
  port = Number(new URL(server.url).port)
})
afterEach(() => server.close())

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

function ask(path: string, { method = 'GET', host = `127.0.0.1:${port}` } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers: { host } }, (reply) => {
      let body = ''
      reply.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      reply.on('end', () => resolve({ status: reply.statusCode!, headers: reply.headers, body }))
    })
    sent.once('error', reject)
    sent.end()
  })
}

test('a page is served with a policy that allows files of the site alone', async () => {
  const { status, headers, body } = await ask('/?from=a')
  expect([status, body]).toEqual([200, FILES['index.html']])
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'content-security-policy': expect.stringMatching(/^default-src 'none'; script-src 'self';/),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cross-origin-resource-policy': 'same-origin',
  })
  expect(headers).not.toHaveProperty('set-cookie')
  expect((await ask('/contract/wire.html')).body).toBe('two')
})

test('HEAD has the headers of GET and no body', async () => {
  const { status, headers, body } = await ask('/', { method: 'HEAD' })
  expect([status, body]).toEqual([200, ''])
  expect(headers['content-length']).toBe(String(Buffer.byteLength(FILES['index.html']!)))
})

test('a request with the name of another host is rejected, whatever it asks for', async () => {
  for (const host of [`localhost:${port}`, 'attacker.example', `127.0.0.1`, `127.0.0.1:1`]) {
    expect([host, (await ask('/', { host })).status]).toEqual([host, 403])
  }
})

test('other methods and other paths are rejected', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const { status, headers } = await ask('/', { method })
    expect([method, status, headers.allow]).toEqual([method, 405, 'GET, HEAD'])
  }
  for (const path of ['/none', '/../index.html', '/__proto__', '//index.html', '/%2e%2e/x']) {
    expect([path, (await ask(path)).status]).toEqual([path, 404])
  }
})

test('a port that is taken is a failure that names it', async () => {
  await expect(DocsServer.open({ file: () => null }, port)).rejects.toMatchObject({
    code: 'CLIENT_FAILED',
    detail: expect.stringContaining(`The port ${port} of 127.0.0.1`),
  })
})

/** Responses over a real connection: complete, truncated or late. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createRawServer } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { ConnectFailure } from './connections.ts'
import { createFetch } from './fetch.ts'

const fetch = createFetch(() => undefined)
const servers: { close(): void; closeAllConnections?(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.()
    server.close()
  }
})

async function serve(respond: (response: ServerResponse, body: string) => void): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    respond(response, `${request.method} ${JSON.stringify(request.headers)} ${body}`)
  })
  return listen(server)
}

async function listen(server: Server | ReturnType<typeof createRawServer>): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it('sends the method, the headers and the body, and reads the whole response', async () => {
  const origin = await serve((response, body) => {
    response.setHeader('set-cookie', ['a=1', 'b=2'])
    response.end(body)
  })
  for (const body of ['ä', Buffer.from('ä'), new URLSearchParams({ a: 'ä' })]) {
    const response = await fetch(`${origin}/x`, { method: 'POST', headers: { 'X-A': 'b' }, body })
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    const text = await response.text()
    expect(text).toContain('"x-a":"b"')
    expect(text).toMatch(/^POST .*"content-length":"[0-9]+"/)
    expect(text.endsWith(` ${body}`)).toBe(true)
  }
})

it('reads a response without a body, and follows no redirect', async () => {
  const empty = await serve((response) => response.writeHead(204).end())
  expect((await fetch(empty, {})).status).toBe(204)
  const moved = await serve((response) => response.writeHead(302, { location: empty }).end('here'))
  const response = await fetch(moved, {})
  expect([response.status, await response.text()]).toEqual([302, 'here'])
})

it('fails if the response is truncated', async () => {
  const origin = await serve((response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"half":', () => response.destroy())
  })
  const response = await fetch(origin, {})
  await expect(response.text()).rejects.toThrow()
})

it('distinguishes a failed connection from a lost one', async () => {
  const origin = await serve((response) => response.destroy())
  await expect(fetch(origin, {})).rejects.not.toBeInstanceOf(ConnectFailure)
  for (const server of servers.splice(0)) server.close()
  const connecting = fetch('http://127.0.0.1:1', {})
  await expect(connecting).rejects.toBeInstanceOf(ConnectFailure)
  await expect(connecting).rejects.toThrow('ECONNREFUSED')
  const plain = await listen(createRawServer((socket) => void socket.end('no TLS here')))
  const handshake = fetch(plain.replace('http:', 'https:'), {})
  await expect(handshake).rejects.toBeInstanceOf(ConnectFailure)
})

it('ends with the reason of its signal, before and during a response', async () => {
  const silent = await serve(() => {})
  const reason = new DOMException('late', 'TimeoutError')
  const early = new AbortController()
  const waiting = fetch(silent, { signal: early.signal })
  early.abort(reason)
  await expect(waiting).rejects.toBe(reason)
  await expect(fetch(silent, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  const half = await serve((response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('half')
  })
  const late = new AbortController()
  const response = await fetch(half, { signal: late.signal })
  late.abort(reason)
  await expect(response.text()).rejects.toThrow()
})

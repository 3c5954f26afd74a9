import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'
import { newState } from './authorizations.ts'
import { CallbackListener, type CallbackResponse } from './callbacks.ts'

let state: Secret
let listener: CallbackListener
let callback: Promise<CallbackResponse>
const interrupt = new AbortController()

beforeEach(async () => {
  state = newState()
  listener = await CallbackListener.open(state)
  callback = listener.waitForResponse(interrupt.signal, 20_000)
  callback.catch(() => {})
})

afterEach(() => listener.close())

function authority(): string {
  return new URL(listener.redirectUri).host
}

/** Sends a raw request; returns the status and the whole text of the response. */
function raw(request: string): Promise<{ status: number; text: string }> {
  const { port } = new URL(listener.redirectUri)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(request))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve({ status: Number(text.split(' ')[1] ?? 0), text }))
  })
}

function head(target: string, lines: readonly string[] = [`Host: ${authority()}`], verb = 'GET') {
  return `${[`${verb} ${target} HTTP/1.1`, ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`
}

const ours = (more = ''): string => `/callback?state=${state.reveal()}&code=good${more}`

/** Tells whether the listener still accepts the expected response. */
async function stillWaits(): Promise<boolean> {
  const request = raw(head(ours()))
  const taken = await callback
  await taken.finish('done')
  return taken.parameters.get('code') === 'good' && (await request).status === 200
}

describe('the loopback address', () => {
  it('the loopback address is literal and has its own port', async () => {
    expect(listener.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:[1-9][0-9]{3,4}\/callback$/)
    const other = await CallbackListener.open(state)
    expect(other.redirectUri).not.toBe(listener.redirectUri)
    other.close()
  })

  it('accepts one response and shows the final page of the command', async () => {
    const request = fetch(`${listener.redirectUri}?state=${state.reveal()}&code=good`)
    const taken = await callback
    await taken.finish('done')
    const response = await request
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    })
    const page = await response.text()
    expect(page).toContain('You are logged in')
    expect(page).not.toContain('good')
    expect(page).not.toContain(state.reveal())
  })

  it('the listener closes after the first response: a second tab cannot connect', async () => {
    expect(await stillWaits()).toBe(true)
    await expect(raw(head(ours('x')))).rejects.toThrow()
  })

  it('rejects the same state while the first response is processed', async () => {
    const { port } = new URL(listener.redirectUri)
    const early = connect(Number(port), '127.0.0.1')
    await new Promise((resolve) => early.once('connect', resolve))
    const first = raw(head(ours()))
    const taken = await callback
    // The connection is older than the end of the listener; a runtime may also close it.
    const late = new Promise<string>((resolve) => {
      let text = ''
      early.on('data', (chunk) => {
        text += chunk
      })
      early.on('error', () => resolve(text))
      early.on('close', () => resolve(text))
    })
    early.write(head(`/callback?state=${state.reveal()}&code=evil`))
    expect(await late).toMatch(/^(?:HTTP\/1\.1 410 .*This login has ended.*)?$/s)
    await taken.finish('failed')
    expect([taken.parameters.get('code'), (await first).status]).toEqual(['good', 400])
  })

  const attacks: readonly [string, () => string, number][] = [
    ['another name for the address', () => head(ours(), ['Host: evil.test']), 400],
    [
      'localhost',
      () => head(ours(), [`Host: ${authority().replace('127.0.0.1', 'localhost')}`]),
      400,
    ],
    ['the address without its port', () => head(ours(), ['Host: 127.0.0.1']), 400],
    ['another port', () => head(ours(), ['Host: 127.0.0.1:1']), 400],
    [
      'a dot behind the address',
      () => head(ours(), [`Host: ${authority().replace(':', '.:')}`]),
      400,
    ],
    ['two hosts', () => head(ours(), [`Host: ${authority()}`, 'Host: evil.test']), 400],
    ['two hosts, ours last', () => head(ours(), ['Host: evil.test', `Host: ${authority()}`]), 400],
    ['no host', () => head(ours(), []), 400],
    ['POST', () => head(ours(), [`Host: ${authority()}`, 'Content-Length: 0'], 'POST'), 405],
    ['HEAD', () => head(ours(), undefined, 'HEAD'), 405],
    ['OPTIONS', () => head(ours(), undefined, 'OPTIONS'), 405],
    ['another path', () => head(ours().replace('callback', 'callback/')), 404],
    ['a longer path', () => head(ours().replace('callback', 'callbacks')), 404],
    ['an encoded path', () => head(ours().replace('callback', 'c%61llback')), 404],
    ['another case', () => head(ours().replace('callback', 'Callback')), 404],
    ['the favicon', () => head('/favicon.ico'), 404],
    ['no state', () => head('/callback?code=evil'), 400],
    ['no query', () => head('/callback'), 400],
    ['an empty state', () => head('/callback?state=&code=evil'), 400],
    ['a wrong state', () => head(`/callback?state=${'A'.repeat(43)}&code=evil`), 400],
    [
      'a part of the state',
      () => head(`/callback?state=${state.reveal().slice(0, 42)}&code=e`),
      400,
    ],
    ['the state twice', () => head(ours(`&state=${state.reveal()}`)), 400],
    ['a second state', () => head(ours('&state=other')), 400],
    ['a wrong state with an error', () => head('/callback?state=x&error=access_denied'), 400],
  ]

  it.each(attacks)('rejects %s and continues to wait', async (_, request, status) => {
    const rejected = await raw(request())
    expect(rejected.status).toBe(status)
    expect(rejected.text).not.toContain('evil')
    expect(await stillWaits()).toBe(true)
  })

  it('tolerates many connections that send nothing', async () => {
    const { port } = new URL(listener.redirectUri)
    const idle = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.1'))
    for (const socket of idle) socket.on('error', () => {})
    expect(await stillWaits()).toBe(true)
    for (const socket of idle) socket.destroy()
  })

  it('stops waiting at its deadline', async () => {
    const error = await listener.waitForResponse(interrupt.signal, 20).catch((reason) => reason)
    expect(isFault(error, 'CLIENT_BROWSER_LOGIN_FAILED')).toBe(true)
  })

  it('stops waiting when the command is interrupted', async () => {
    const controller = new AbortController()
    const waiting = listener.waitForResponse(controller.signal)
    controller.abort()
    const error = await waiting.catch((reason) => reason)
    expect(isFault(error, 'CLIENT_INTERRUPTED')).toBe(true)
    const late = await listener.waitForResponse(controller.signal).catch((reason) => reason)
    expect(isFault(late, 'CLIENT_INTERRUPTED')).toBe(true)
  })
})

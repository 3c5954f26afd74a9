import { Hono } from 'hono'
import { afterEach, expect, test } from 'vitest'
import { MANAGEMENT_CODES } from '../http/errors.ts'
import { TOKEN_BYTES_MAX } from '../identity/jwt/tokens.ts'
import { TestSystem } from '../system/system.ts'
import { type OpenListener, openListener } from './listeners.ts'
import { peerAddress } from './peers.ts'

let open: OpenListener | undefined

afterEach(() => open?.cut())

function listen(tlsTerminated: boolean): string {
  const app = new Hono<{ Bindings: { peer: string } }>()
  app.get('/', (context) => context.text(context.env.peer))
  open = openListener({
    surface: 'management',
    listen: { host: '127.0.0.1', port: 0, loopback: true },
    app: app as unknown as Hono,
    codes: MANAGEMENT_CODES,
    system: new TestSystem(),
    tlsTerminated,
  })
  return `http://${open.address}/`
}

const FORWARDED = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7' }

test('the peer is the address of the socket, whatever a client claims', async () => {
  expect(await (await fetch(listen(false), { headers: FORWARDED })).text()).toBe('127.0.0.1')
})

test('behind a trusted proxy the peer is the hop that the proxy saw', async () => {
  const url = listen(true)
  expect(await (await fetch(url, { headers: FORWARDED })).text()).toBe('198.51.100.7')
  expect(await (await fetch(url)).text()).toBe('127.0.0.1')
})

test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:1:2::1', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8::192.0.2.1', '2001:db8:0:0::/64'],
  ['unknown', '192.0.2.1'],
  ['', '192.0.2.1'],
  ['1.2.3', '192.0.2.1'],
  ['x'.repeat(10_000), '192.0.2.1'],
])('the hop %j counts as %s', (hop, key) => {
  const headers = new Headers({ 'x-forwarded-for': `203.0.113.9,${hop}` })
  expect(peerAddress(headers, '192.0.2.1', true)).toBe(key)
})

test('a head has room for the largest token, and is refused where it has too much', async () => {
  const url = listen(false)
  const send = async (bytes: number) => {
    const authorization = `Bearer ${'x'.repeat(bytes)}`
    return (await fetch(url, { headers: { authorization, cookie: 'x'.repeat(8 * 1024) } })).status
  }
  expect([await send(TOKEN_BYTES_MAX), await send(2 * TOKEN_BYTES_MAX)]).toEqual([200, 431])
})

test('a request without any address shares one key', () => {
  expect(peerAddress(new Headers(), undefined, false)).toBe('unknown')
})

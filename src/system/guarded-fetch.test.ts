import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { selfSigned } from '../../testing/certificates.ts'
import { FetchFailure, GuardedFetch, type GuardedFetchOptions } from './guarded-fetch.ts'
import { isPublicAddress } from './public-addresses.ts'

const PUBLIC = '93.184.216.34'
const PUBLIC_6 = '2606:2800:220:1:248:1893:25c8:1946'
const { certificate, key } = selfSigned('idp.test', 'xn--bcher-kva.test')

let secure: Server
let plain: Server
let dialled: string[]
let resolved: string[]
let requests: { url: string; host: string }[]
let answer: RequestListener

const listen = (server: Server) =>
  new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const portOf = (server: Server) => (server.address() as AddressInfo).port

beforeAll(async () => {
  const listener: RequestListener = (request, response) => {
    requests.push({ url: request.url ?? '', host: request.headers.host ?? '' })
    answer(request, response)
  }
  secure = createSecureServer({ key, cert: certificate }, listener)
  plain = createServer(listener)
  await Promise.all([listen(secure), listen(plain)])
})

afterAll(() => {
  secure.closeAllConnections()
  plain.closeAllConnections()
  secure.close()
  plain.close()
})

beforeEach(() => {
  dialled = []
  resolved = []
  requests = []
  answer = (_, response) => response.end('{}')
})

function fetcher(
  given: Partial<GuardedFetchOptions> = {},
  answers: readonly (readonly string[])[] = [[PUBLIC]],
  dialPort: (address: string) => number = () => portOf(secure),
): GuardedFetch {
  return new GuardedFetch({
    allowedOrigins: ['https://idp.test'],
    allowLoopbackHttp: false,
    bodyBytesMax: 1024,
    timeoutMs: 20_000,
    concurrencyMax: 4,
    network: {
      async resolve(hostname) {
        resolved.push(hostname)
        const found = answers[Math.min(resolved.length, answers.length) - 1]!
        return found.map((address) => ({ address }))
      },
      dial(address) {
        dialled.push(address)
        return { host: '127.0.0.1', port: dialPort(address), authority: certificate }
      },
    },
    ...given,
  })
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return error instanceof FetchFailure ? error.reason : String(error)
  }
  return 'none'
}

const originOf = (url: string) => (URL.canParse(url) ? new URL(url).origin : url)

const REJECTED: readonly (readonly [url: string, reason: string])[] = [
  ...[
    '127.0.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '127.0.1',
    '0',
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '100.127.255.255',
    '169.254.169.254',
    '0xa9fea9fe',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.19.255.255',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:93.184.216.34]',
    '[::127.0.0.1]',
    '[fc00::1]',
    '[fd12:3456::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::93.184.216.34]',
    '[64:ff9b:1::1]',
    '[2002:7f00:1::]',
    '[2001::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[100::1]',
    '127。0。0。1',
    '127．0．0．1',
    '①②⑦.0.0.1',
    '%31%32%37.0.0.1',
  ].map((host) => [`https://${host}/`, 'address'] as const),
  ['https://idp.test./', 'url'],
  ['https://127.0.0.1./', 'address'],
  ['https://user@idp.test/', 'url'],
  ['https://user:secret@idp.test/', 'url'],
  ['https://idp.test@127.0.0.1/', 'url'],
  ['https://idp.test/#fragment', 'url'],
  ['https://idp.test/#', 'url'],
  ['http://idp.test/', 'url'],
  ['http://127.0.0.1/', 'url'],
  ['http://[::1]/', 'url'],
  ['ftp://idp.test/', 'url'],
  ['file:///etc/passwd', 'url'],
  ['data:application/json,{}', 'url'],
  ['blob:https://idp.test/1', 'url'],
  ['//idp.test/', 'url'],
  ['/jwks', 'url'],
  ['https://', 'url'],
  ['https://[::1%25lo]/', 'url'],
  ['https://999.1.1.1/', 'url'],
  ['', 'url'],
]

describe('a URL', () => {
  it.each(REJECTED)('the URL %s is rejected before any connection: %s', async (url, reason) => {
    const origins = [originOf(url), 'https://idp.test']
    const fetch = fetcher({ allowedOrigins: origins })
    expect(await reasonOf(fetch.get(url))).toBe(reason)
    expect(dialled).toEqual([])
  })

  it.each([
    'https://other.test/',
    'https://idp.test:8443/',
    'https://idp.test.evil.test/',
    'https://sub.idp.test/',
    'https://evil.test\\@idp.test/',
    'https://evil.test/https://idp.test',
    'https://93.184.216.34/',
  ])('the URL %s is outside of the allow-list and not even resolved', async (url) => {
    expect(await reasonOf(fetcher().get(url))).toBe('origin')
    expect([resolved, dialled]).toEqual([[], []])
  })

  it.each([
    'https://idp.test/a?b=1',
    'https://IDP.test/a?b=1',
    'https://idp。test/a?b=1',
    'https://idp.test:443/a?b=1',
    'https://idp.test/x/../a?b=1',
  ])('the URL %s causes the same request', async (url) => {
    const document = await fetcher().get(url)
    expect([document.status, new TextDecoder().decode(document.body)]).toEqual([200, '{}'])
    expect(requests).toEqual([{ url: '/a?b=1', host: 'idp.test' }])
    expect([resolved, dialled]).toEqual([['idp.test'], [PUBLIC]])
  })

  it('a URL with an international name is requested in its ASCII form', async () => {
    const fetch = fetcher({ allowedOrigins: ['https://xn--bcher-kva.test'] })
    await fetch.get('https://bücher.test/')
    expect(requests[0]?.host).toBe('xn--bcher-kva.test')
  })
})

describe('an address', () => {
  it.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.1',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    PUBLIC_6,
    '2001:200::1',
    '2001:db9::1',
    '2003::1',
    '3ffe::1',
  ])('the address %s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    '192.0.2.1',
    '198.51.100.7',
    '203.0.113.9',
    '192.88.99.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.175.48.1',
    '2620:4f:8000::1',
    '5f00::1',
    '::ffff:1.1.1.1',
    '::ffff:0:127.0.0.1',
    '::1.1.1.1',
    '64:ff9b::1.1.1.1',
    '2002:0101:0101::',
    '2001:0:53aa:64c:0:0:0:1',
    'fe80::1%eth0',
    '2606:2800::1%1',
    '4000::1',
    '0.1.2.3',
    '01.1.1.1',
    '1.1.1',
    '16843009',
    '0x1010101',
    '',
    'idp.test',
  ])('the address %s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('a name', () => {
  it.each([
    ['loopback', ['127.0.0.1']],
    ['a private and a public one', [PUBLIC, '10.0.0.7']],
    ['a public and a loopback IPv6 one', [PUBLIC, '::1']],
    ['a mapped one', ['::ffff:10.0.0.7']],
    ['the metadata service', ['169.254.169.254']],
    ['something that is not an address', ['localhost']],
  ])('a name with the address of %s is rejected', async (_, addresses) => {
    expect(await reasonOf(fetcher({}, [addresses]).get('https://idp.test/'))).toBe('address')
    expect(dialled).toEqual([])
  })

  it('a name without an address is rejected', async () => {
    expect(await reasonOf(fetcher({}, [[]]).get('https://idp.test/'))).toBe('name')
  })

  it('a name that is rebound to loopback between requests is not connected to', async () => {
    const fetch = fetcher({}, [[PUBLIC], ['127.0.0.1']])
    expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('none')
    expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('address')
    expect([resolved.length, dialled]).toEqual([2, [PUBLIC]])
  })

  it('a name is resolved once for a request, which uses the checked address', async () => {
    // A second lookup would return a loopback address.
    const fetch = fetcher({}, [[PUBLIC_6, PUBLIC], ['127.0.0.1']])
    await fetch.get('https://idp.test/')
    expect([resolved, dialled]).toEqual([['idp.test'], [PUBLIC]])
  })

  it('a name with an unreachable address is requested at its next address', async () => {
    const closed = createServer()
    await listen(closed)
    const port = portOf(closed)
    await new Promise((resolve) => closed.close(resolve))
    const fetch = fetcher({}, [[PUBLIC, PUBLIC_6]], (address) =>
      address === PUBLIC ? port : portOf(secure),
    )
    expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('none')
    expect(dialled).toEqual([PUBLIC, PUBLIC_6])
  })

  it('a name that the certificate does not include is rejected', async () => {
    const fetch = fetcher({ allowedOrigins: ['https://other.test'] })
    expect(await reasonOf(fetch.get('https://other.test/'))).toBe('connection')
    expect(requests).toEqual([])
  })
})

describe('a response', () => {
  const get = (given: Partial<GuardedFetchOptions> = {}) =>
    reasonOf(fetcher(given).get('https://idp.test/'))

  it.each([301, 302, 303, 307, 308, 304])('status %i is not followed', async (status) => {
    answer = (_, response) => response.writeHead(status, { location: 'https://idp.test/x' }).end()
    expect(await get()).toBe('redirect')
    expect(requests).toHaveLength(1)
  })

  it('a response of the largest size is read, and one byte more is rejected', async () => {
    answer = (_, response) => response.end('x'.repeat(1024))
    expect(await get()).toBe('none')
    answer = (_, response) => response.end('x'.repeat(1025))
    expect(await get()).toBe('size')
  })

  it('a response without a declared size is aborted at the bound', async () => {
    answer = (_, response) => {
      const write = () => {
        if (!response.destroyed) response.write('x'.repeat(512), () => setTimeout(write, 1))
      }
      write()
    }
    expect(await get()).toBe('size')
  })

  it('a response that arrives slowly is aborted after the timeout', async () => {
    answer = (_, response) => {
      const timer = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(timer))
    }
    expect(await get({ timeoutMs: 200 })).toBe('time')
  })

  it('a response that never arrives is aborted after the timeout', async () => {
    answer = () => undefined
    expect(await get({ timeoutMs: 200 })).toBe('time')
  })

  it('a response that ends early is a failure', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('x'.repeat(10), () => response.destroy())
    }
    expect(await get()).toBe('connection')
  })
})

it('a lookup that hangs is aborted after the timeout', async () => {
  const network = { resolve: () => new Promise<never>(() => undefined), dial: () => never() }
  const never = () => ({ host: '127.0.0.1', port: 1 })
  const fetch = fetcher({ timeoutMs: 100, network })
  expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('time')
})

it('requests beyond the concurrency limit are rejected until others end', async () => {
  const waiting: (() => void)[] = []
  answer = (_, response) => waiting.push(() => response.end('{}'))
  const fetch = fetcher({ concurrencyMax: 2 })
  const first = [fetch.get('https://idp.test/'), fetch.get('https://idp.test/')]
  expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('busy')
  while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  for (const end of waiting) end()
  await Promise.all(first)
  answer = (_, response) => response.end('{}')
  expect(await reasonOf(fetch.get('https://idp.test/'))).toBe('none')
})

describe('literal-loopback HTTP', () => {
  const allowed = () => ({
    allowedOrigins: [`http://127.0.0.1:${portOf(plain)}`],
    allowLoopbackHttp: true,
  })

  it('literal-loopback HTTP needs no lookup where the settings allow it', async () => {
    const fetch = fetcher(allowed(), [], () => portOf(plain))
    const url = `http://127.0.0.1:${portOf(plain)}/jwks`
    expect((await fetch.get(url)).status).toBe(200)
    expect(resolved).toEqual([])
  })

  it('literal-loopback HTTP excludes localhost, other ports and private addresses', async () => {
    const fetch = fetcher({
      allowLoopbackHttp: true,
      allowedOrigins: [...allowed().allowedOrigins, 'http://localhost:1', 'http://10.0.0.1'],
    })
    expect(await reasonOf(fetch.get('http://localhost:1/'))).toBe('url')
    expect(await reasonOf(fetch.get('http://127.0.0.1:1/'))).toBe('origin')
    expect(await reasonOf(fetch.get('http://10.0.0.1/'))).toBe('url')
    expect(dialled).toEqual([])
  })
})

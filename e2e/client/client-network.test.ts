/**
 * The destinations of svc's tokens: the origin of the session, through no proxy except the tunnel
 * of HTTPS_PROXY, and only if the certificate is trusted. Real servers and proxies record what they
 * receive.
 *
 * @module-tag slow
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Certificate, selfSigned } from '../../testing/certificates.ts'
import { ForwardProxy, type ForwardProxyOptions } from '../../testing/servers/forward-proxy.ts'
import { RecordingServer } from '../../testing/servers/recording-server.ts'
import { argv } from '../argv.ts'
import { CLIENTS, type Environment, type Result, run, runSync } from '../harness.ts'
import {
  ACCESS_TOKEN,
  REFRESH_TOKEN,
  type StoredSession,
  storedSession,
} from './stored-sessions.ts'

const REJECTED = JSON.stringify({
  version: 1,
  requestId: 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  status: 'error',
  error: { code: 'PLATFORM_AUTHENTICATION_FAILED', message: 'No.', retryable: false },
})
const LOOPBACK_VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
])

let certificate: Certificate
/** The file of the certificate in a directory that OpenSSL can read: its name is a hash. */
let certificateFile: string
let plain: RecordingServer
let secure: RecordingServer
beforeAll(async () => {
  certificate = selfSigned('svc.test', 'localhost')
  const authorities = mkdtempSync(join(tmpdir(), 'svc-e2e-authorities-'))
  const draft = join(authorities, 'draft.pem')
  writeFileSync(draft, certificate.certificate)
  const hash = runSync(['/usr/bin/openssl', 'x509', '-hash', '-noout', '-in', draft]).stdout.trim()
  certificateFile = join(authorities, `${hash}.0`)
  renameSync(draft, certificateFile)
  plain = await RecordingServer.start(() => ({ status: 401, body: REJECTED }))
  secure = await RecordingServer.start(() => ({ status: 401, body: REJECTED }), certificate)
})
afterAll(() => {
  plain[Symbol.dispose]()
  secure[Symbol.dispose]()
  rmSync(dirname(certificateFile), { recursive: true })
})

let proxy: ForwardProxy
beforeEach(async () => {
  await restartProxy()
  plain.requests.length = 0
  secure.requests.length = 0
})
afterEach(() => proxy[Symbol.dispose]())

async function restartProxy(options: ForwardProxyOptions = {}): Promise<void> {
  proxy?.[Symbol.dispose]()
  proxy = await ForwardProxy.start({ tunnels: { 'svc.test:443': secure.port }, ...options })
}

const proxyUrl = (): string => `http://127.0.0.1:${proxy.port}`

/** Returns the access token of `svc whoami`, and the refresh token sent after its rejection. */
function sentTokens({ requests }: RecordingServer): (string | undefined)[] {
  return requests.map(({ headers, body }) =>
    body === ''
      ? headers.authorization
      : (JSON.parse(body) as { refreshToken: string }).refreshToken,
  )
}
const BOTH_TOKENS = [`Bearer ${ACCESS_TOKEN}`, REFRESH_TOKEN]

describe.each(CLIENTS)('$build', ({ build, command, needs }) => {
  /** The rows of each table. Node takes longest to start, so the short run has only the first. */
  const rows = <T>(...all: readonly T[]): readonly T[] =>
    process.env.SVC_TEST_LONG === '1' || build === 'the executable' ? all : all.slice(0, 1)

  let session: StoredSession | undefined
  afterEach(() => session?.[Symbol.dispose]())

  async function whoami(
    authentication: string,
    variables: Environment,
    options: { readonly trusts?: boolean } = {},
  ): Promise<Result> {
    session = storedSession({ authentication })
    const trust: Environment =
      options.trusts === true ? { NODE_EXTRA_CA_CERTS: certificateFile } : {}
    const environment = { ...needs, ...session.environment, ...trust, ...variables }
    return run(argv`${command} whoami`, { environment })
  }

  test.each(rows(...LOOPBACK_VARIABLES))(
    '%s receives no token of a loopback origin',
    async (name) => {
      const result = await whoami(plain.origin(), { [name]: proxyUrl() })
      expect(proxy.requests).toEqual([])
      expect(sentTokens(plain)).toEqual(BOTH_TOKENS)
      expect(result.stderr).toContain('PLATFORM_AUTHENTICATION_FAILED')
    },
  )

  test('a loopback origin with TLS is reached without the proxy', async () => {
    await whoami(secure.origin('localhost'), { HTTPS_PROXY: proxyUrl() }, { trusts: true })
    expect(proxy.requests).toEqual([])
    expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
  })

  test.each(rows('HTTPS_PROXY', 'https_proxy'))(
    '%s carries an HTTPS origin in a tunnel that it cannot read',
    async (name) => {
      await whoami('https://svc.test', { [name]: proxyUrl() }, { trusts: true })
      expect(proxy.requests).toEqual(['CONNECT svc.test:443', 'CONNECT svc.test:443'])
      expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
      expect(secure.requests[0]?.headers.host).toBe('svc.test')
      expect(proxy.received).not.toContain(ACCESS_TOKEN)
      expect(proxy.received).not.toContain(REFRESH_TOKEN)
    },
  )

  test('a tunnel requires a certificate with the requested name', async () => {
    await restartProxy({ tunnels: { 'other.test:443': secure.port } })
    const variables = { HTTPS_PROXY: proxyUrl() }
    const result = await whoami('https://other.test', variables, { trusts: true })
    expect(proxy.requests).toEqual(['CONNECT other.test:443'])
    expect(secure.requests).toEqual([])
    expect(result.stderr).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
  })

  test.each(rows('HTTP_PROXY', 'ALL_PROXY', 'all_proxy'))(
    '%s is not the proxy of an HTTPS origin',
    async (name) => {
      const result = await whoami('https://svc.test', { [name]: proxyUrl() })
      expect(proxy.requests).toEqual([])
      expect(result.stderr).toContain('CLIENT_SERVER_UNREACHABLE')
    },
  )

  test('a tunnel requires the certificate of the origin, not of the proxy', async () => {
    const result = await whoami('https://svc.test', { HTTPS_PROXY: proxyUrl() })
    expect(proxy.requests).toEqual(['CONNECT svc.test:443'])
    expect(secure.requests).toEqual([])
    expect(result.stderr).toContain('DEPTH_ZERO_SELF_SIGNED_CERT')
  })

  test.each(
    rows(
      ['NO_PROXY', 'svc.test'],
      ['no_proxy', 'elsewhere.test, .test'],
      ['NO_PROXY', '*'],
      ['no_proxy', 'svc.test:443'],
    ),
  )('%s=%s bypasses the proxy', async (name, value) => {
    const variables = { HTTPS_PROXY: proxyUrl(), [name]: value }
    const result = await whoami('https://svc.test', variables, { trusts: true })
    expect(proxy.requests).toEqual([])
    expect(result.stderr).toContain('CLIENT_SERVER_UNREACHABLE')
  })

  test('NO_PROXY for another port or name does not bypass the proxy', async () => {
    const variables = { HTTPS_PROXY: proxyUrl(), NO_PROXY: 'svc.test:8443,vc.test,10.0.0.0/8' }
    await whoami('https://svc.test', variables, { trusts: true })
    expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
  })

  test('a proxy gets the credentials of its URL, and svc never prints them', async () => {
    await restartProxy({ credentials: 'ada:p@ss' })
    const address = `127.0.0.1:${proxy.port}`
    const right = { HTTPS_PROXY: `http://ada:p%40ss@${address}` }
    await whoami('https://svc.test', right, { trusts: true })
    expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
    session?.[Symbol.dispose]()
    const wrong = { HTTPS_PROXY: `http://ada:canary@${address}` }
    const result = await whoami('https://svc.test', wrong, { trusts: true })
    expect(result.stderr).toContain(`the proxy ${address} responded with HTTP 407`)
    expect(result.stderr).not.toContain('canary')
    expect(result.status).toBe(5)
  })

  test('a proxy that is reached over TLS must be trusted', async () => {
    await restartProxy({ certificate })
    const variables = { HTTPS_PROXY: `https://localhost:${proxy.port}` }
    const rejected = await whoami('https://svc.test', variables)
    expect(rejected.stderr).toContain('DEPTH_ZERO_SELF_SIGNED_CERT')
    expect(proxy.requests).toEqual([])
    session?.[Symbol.dispose]()
    await whoami('https://svc.test', variables, { trusts: true })
    expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
  })

  test.each(rows('ftp://canary@127.0.0.1:21', 'socks5://127.0.0.1:1080', 'http://'))(
    'HTTPS_PROXY=%s is rejected with its name before anything is sent',
    async (value) => {
      const result = await whoami('https://svc.test', { HTTPS_PROXY: value })
      expect(result.status).toBe(2)
      expect(result.stderr).toContain('HTTPS_PROXY')
      expect(result.stderr).not.toContain('canary')
    },
  )

  test('NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored', async () => {
    const variables = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const result = await whoami(secure.origin('localhost'), variables)
    expect(secure.requests).toEqual([])
    expect(result.stderr).toContain('DEPTH_ZERO_SELF_SIGNED_CERT')
    expect(result.stderr).not.toContain('NODE_TLS_REJECT_UNAUTHORIZED')
  })

  test.each(rows('SSL_CERT_FILE', 'SSL_CERT_DIR'))('%s adds no authority', async (name) => {
    const path = name === 'SSL_CERT_FILE' ? certificateFile : dirname(certificateFile)
    const variables = { [name]: path, NODE_USE_SYSTEM_CA: '1' }
    const result = await whoami(secure.origin('localhost'), variables)
    expect(secure.requests).toEqual([])
    expect(result.stderr).toContain('DEPTH_ZERO_SELF_SIGNED_CERT')
  })

  test('NODE_EXTRA_CA_CERTS names an authority that is trusted for its own names', async () => {
    await whoami(secure.origin('localhost'), {}, { trusts: true })
    expect(sentTokens(secure)).toEqual(BOTH_TOKENS)
    session?.[Symbol.dispose]()
    secure.requests.length = 0
    const other = await whoami(secure.origin('127.0.0.1'), {}, { trusts: true })
    expect(other.stderr).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
    expect(secure.requests).toEqual([])
  })
})

import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  makeKey,
  PROVIDER,
  type TestProvider,
  testProvider,
} from '../../../testing/providers/identity-providers.ts'
import { isFault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import type { PublishedKeys } from '../jwt/published-keys.ts'
import { providerKeys } from './provider-keys.ts'

const MINUTE = 60_000
let idp: TestProvider
let system: TestSystem
let log: MemoryLog
let keys: PublishedKeys

beforeEach(async () => {
  idp = await testProvider()
  system = new TestSystem()
  log = memoryLog()
  keys = providerKeys({ provider: PROVIDER, system, log: log.log, network: idp.network })
})

afterEach(() => idp.close())

async function find(kid: string | null = 'key-1'): Promise<string> {
  try {
    return (await keys.find(kid, 'ES256')) === null ? 'unknown' : 'found'
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

const DOWN = 'PLATFORM_UNAVAILABLE'
const loads = () => idp.requests.filter((path) => path.endsWith('/jwks')).length
const onlyJwks =
  (answer: (response: ServerResponse) => void) => (path: string, response: ServerResponse) => {
    if (!path.endsWith('/jwks')) return false
    answer(response)
    return true
  }
const failing = (_: string, response: ServerResponse) => {
  response.writeHead(500).end()
  return true
}

describe('keys', () => {
  it('keys are loaded once for concurrent callers', async () => {
    expect(await Promise.all(Array.from({ length: 32 }, () => find()))).toEqual(
      Array(32).fill('found'),
    )
    expect(idp.requests).toEqual(['/tenant/.well-known/openid-configuration', '/jwks'])
  })

  it('keys are reused for ten minutes and then loaded again', async () => {
    await find()
    system.advance(10 * MINUTE - 1)
    await find()
    expect(loads()).toBe(1)
    system.advance(1)
    expect(await find()).toBe('found')
    expect(loads()).toBe(2)
  })

  it('keys that the provider withdraws are rejected after ten minutes', async () => {
    await find()
    idp.jwks = { keys: [(await makeKey('key-2')).jwk] }
    system.advance(10 * MINUTE)
    expect(await find('key-1')).toBe('unknown')
    expect(await find('key-2')).toBe('found')
  })

  it('keys are used for exactly a day while the provider is down', async () => {
    await find()
    idp.intercept = failing
    system.advance(24 * 60 * MINUTE - 1)
    expect(await find()).toBe('found')
    system.advance(1)
    expect(await find()).toBe(DOWN)
    idp.intercept = null
    system.advance(5_000)
    expect(await find()).toBe('found')
  })

  it('cached keys are used at once while the provider hangs, after a failed load', async () => {
    await find()
    system.advance(10 * MINUTE)
    idp.intercept = failing
    expect(await find()).toBe('found')
    system.advance(5_000)
    idp.intercept = () => true
    const asked = idp.requests.length
    // The provider never answers, so waiting for it would hang.
    expect(await find()).toBe('found')
    await expect.poll(() => idp.requests.length).toBe(asked + 1)
  })

  it('a provider that is down is requested at most every five seconds', async () => {
    idp.intercept = failing
    for (let i = 0; i < 20; i++) expect(await find()).toBe(DOWN)
    expect(idp.requests).toHaveLength(1)
    system.advance(5_000)
    await find()
    expect(idp.requests).toHaveLength(2)
  })
})

describe('an unknown key', () => {
  it('an unknown key causes a reload, also before ten minutes have passed', async () => {
    await find()
    system.advance(30_000)
    idp.jwks = { keys: [idp.key.jwk, (await makeKey('key-2')).jwk] }
    expect(await find('key-2')).toBe('found')
    expect(loads()).toBe(2)
  })

  it('unknown keys cause one reload in 30 seconds, over all callers and names', async () => {
    await find()
    system.advance(30_000)
    const names = Array.from({ length: 100 }, (_, i) => find(`random-${i}`))
    expect(new Set(await Promise.all(names))).toEqual(new Set(['unknown']))
    expect(loads()).toBe(2)
    system.advance(29_999)
    await find('random')
    expect(loads()).toBe(2)
    system.advance(1)
    await find('random')
    expect(loads()).toBe(3)
  })

  it('unknown keys are unavailable while the provider is down; known ones stay valid', async () => {
    await find()
    system.advance(30_000)
    idp.intercept = failing
    for (let i = 0; i < 20; i++) expect(await find('key-2')).toBe(DOWN)
    expect(loads()).toBe(1)
    expect(idp.requests).toHaveLength(3)
    expect(await find('key-1')).toBe('found')
  })

  it('an unknown key causes a reload five seconds after the provider failed', async () => {
    await find()
    system.advance(30_000)
    idp.intercept = failing
    await find('key-2')
    idp.intercept = null
    idp.jwks = { keys: [idp.key.jwk, (await makeKey('key-2')).jwk] }
    system.advance(4_999)
    expect(await find('key-2')).toBe(DOWN)
    system.advance(1)
    expect(await find('key-2')).toBe('found')
    system.advance(29_999)
    expect(await find('key-3')).toBe('unknown')
    expect(loads()).toBe(2)
  })

  it('an unknown key without a name is not found where several keys are published', async () => {
    idp.jwks = { keys: [idp.key.jwk, (await makeKey('key-2')).jwk] }
    expect(await find(null)).toBe('unknown')
  })
})

describe('no keys are accepted from a provider that sends', () => {
  const answers: readonly (readonly [string, (response: ServerResponse) => void, string])[] = [
    [
      'a redirect',
      (r) => r.writeHead(302, { location: 'https://idp.test/other/jwks' }).end(),
      'redirect',
    ],
    [
      'a redirect to loopback',
      (r) => r.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
      'redirect',
    ],
    ['a body over 256 KiB', (r) => r.end('x'.repeat(256 * 1024 + 1)), 'size'],
    ['a failure with keys', (r) => r.writeHead(500).end(JSON.stringify(idp.jwks)), 'status 200'],
    ['no JSON', (r) => r.end('<html>'), '$'],
    ['a duplicate member', (r) => r.end('{"keys":[],"keys":[]}'), 'no duplicate key'],
    ['a list', (r) => r.end('[]'), 'a JSON object'],
    ['keys that are not a list', (r) => r.end('{"keys":{}}'), 'keys'],
    ['a key that is not an object', (r) => r.end('{"keys":["x"]}'), 'a JSON object'],
    ['no key at all', (r) => r.end('{"keys":[]}'), 'a key of a configured algorithm'],
  ]
  it.each(answers)('no keys are accepted from %s', async (_, answer, detail) => {
    idp.intercept = onlyJwks(answer)
    expect(await find()).toBe(DOWN)
    expect(log.text()).toContain(detail)
  })

  it.each<[string, Record<string, unknown>]>([
    ['another issuer', { issuer: 'https://idp.test/other' }],
    ['the issuer with a slash', { issuer: `${PROVIDER.issuer}/` }],
    ['no issuer', { issuer: undefined }],
    ['no keys', { jwks_uri: undefined }],
    ['keys at another origin', { jwks_uri: 'https://evil.test/jwks' }],
    ['keys over HTTP', { jwks_uri: 'http://keys.idp.test/jwks' }],
    ['keys at loopback', { jwks_uri: 'https://127.0.0.1/jwks' }],
    ['keys in the metadata service', { jwks_uri: 'http://169.254.169.254/latest/' }],
    ['keys in a file', { jwks_uri: 'file:///etc/passwd' }],
    ['keys with a password', { jwks_uri: 'https://a:b@keys.idp.test/jwks' }],
  ])('no keys are accepted from discovery with %s', async (_, given) => {
    idp.discovery = { ...idp.discovery, ...given }
    expect(await find()).toBe(DOWN)
    expect(loads()).toBe(0)
    expect(log.text()).not.toMatch(/evil|passwd|latest/)
  })

  it.each([
    ['a private address', ['10.0.0.7']],
    ['loopback', ['127.0.0.1']],
    ['a public and a private address', ['93.184.216.34', '192.168.0.1']],
  ])('a name of the keys that resolves to %s', async (_, addresses) => {
    idp.addresses.set('keys.idp.test', addresses)
    expect(await find()).toBe(DOWN)
    expect(loads()).toBe(0)
    expect(idp.dialled).toEqual(['93.184.216.34'])
  })

  it('a body that never ends', { tags: ['slow'] }, async () => {
    idp.intercept = onlyJwks((response) => {
      const timer = setInterval(() => response.write(' '), 50)
      response.on('close', () => clearInterval(timer))
    })
    expect(await find()).toBe(DOWN)
  })
})

import { describe, expect, it } from 'vitest'
import { proxyFor } from './proxies.ts'

const PROXY = 'http://proxy.test:3128'

function proxyOf(url: string, variables: Record<string, string>): string | null {
  const proxy = proxyFor(new URL(url), (name) => variables[name])
  return proxy === null ? null : `${proxy.secure ? 'https' : 'http'} ${proxy.host} ${proxy.port}`
}

describe('the proxy of a URL', () => {
  it.each([
    ['https://a.test', 'http proxy.test 3128'],
    ['wss://a.test/v1/realtime', 'http proxy.test 3128'],
    ['http://a.test', null],
    ['ws://a.test', null],
    ['https://localhost:8443', null],
    ['https://api.localhost', null],
    ['https://127.0.0.1', null],
    ['https://127.9.9.9:4443', null],
    ['wss://[::1]:4443', null],
    ['https://127.0.0.1.a.test', 'http proxy.test 3128'],
    ['https://128.0.0.1', 'http proxy.test 3128'],
  ])('the proxy for %s is %s', (url, proxy) => {
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, ALL_PROXY: PROXY })).toBe(proxy)
  })

  it.each([
    ['http://proxy.test:3128', 'http proxy.test 3128'],
    ['http://proxy.test', 'http proxy.test 80'],
    ['https://proxy.test', 'https proxy.test 443'],
    ['proxy.test:3128', 'http proxy.test 3128'],
    ['http://[fd00::1]:3128', 'http fd00::1 3128'],
    ['', null],
  ])('the value %s of a proxy variable is read as %s', (value, proxy) => {
    expect(proxyOf('https://a.test', { HTTPS_PROXY: value })).toBe(proxy)
    expect(proxyOf('https://a.test', { https_proxy: value })).toBe(proxy)
  })

  it('the lower-case variable applies if both are set', () => {
    const variables = { https_proxy: 'http://lower.test:1', HTTPS_PROXY: 'http://upper.test:2' }
    expect(proxyOf('https://a.test', variables)).toBe('http lower.test 1')
  })

  it('the proxy gets its percent-decoded credentials', () => {
    const proofOf = (value: string) =>
      proxyFor(new URL('https://a.test'), () => value)?.authorization?.reveal()
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    expect(proofOf('http://ada:p%40%3Ass@proxy.test')).toBe(basic('ada:p@:ss'))
    expect(proofOf('http://ada@proxy.test')).toBe(basic('ada:'))
    expect(proofOf('http://ada:100%@proxy.test')).toBe(basic('ada:100%'))
    expect(proofOf('http://proxy.test')).toBeUndefined()
  })

  it.each(['socks5://canary@proxy.test', 'http://', '::', 'http://proxy.test:99999'])(
    'the proxy cannot be %s',
    (value) => {
      const detail = expect.not.stringContaining('canary')
      const fault = expect.objectContaining({ code: 'CLIENT_USAGE', detail })
      expect(() => proxyOf('https://a.test', { https_proxy: value })).toThrow(fault)
    },
  )
})

describe('NO_PROXY', () => {
  it.each([
    ['*', 'https://a.test', true],
    ['a.test', 'https://a.test', true],
    ['A.Test', 'https://a.test', true],
    ['a.test', 'https://b.a.test', true],
    ['.a.test', 'https://b.a.test', true],
    ['*.a.test', 'https://b.a.test', true],
    ['a.test', 'https://aa.test', false],
    ['b.a.test', 'https://a.test', false],
    ['a.test:443', 'https://a.test', true],
    ['a.test:8443', 'https://a.test', false],
    ['a.test:8443', 'https://a.test:8443', true],
    ['b.test a.test', 'https://a.test', true],
    ['b.test,,a.test', 'https://a.test', true],
    ['10.0.0.0/8', 'https://10.1.2.3', true],
    ['10.0.0.0/8', 'https://11.1.2.3', false],
    ['10.1.2.3', 'https://10.1.2.3', true],
    ['1.2.3', 'https://10.1.2.3', false],
    ['10.1.2.3:8443', 'https://10.1.2.3:8443', true],
    ['fd00::/8', 'https://[fd00::1]', true],
    ['[fd00::1]', 'https://[fd00::1]', true],
    ['fd00::1', 'https://[fd00::1]', true],
    ['[fd00::1]:8443', 'https://[fd00::1]:8443', true],
    ['[fd00::1]:8443', 'https://[fd00::1]', false],
    ['', 'https://a.test', false],
    [',', 'https://a.test', false],
  ])('the value %s of NO_PROXY bypasses the proxy for %s: %s', (value, url, direct) => {
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, NO_PROXY: value }) === null).toBe(direct)
    expect(proxyOf(url, { HTTPS_PROXY: PROXY, no_proxy: value }) === null).toBe(direct)
  })
})

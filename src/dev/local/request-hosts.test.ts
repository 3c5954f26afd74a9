import { describe, expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { hostRule } from './request-hosts.ts'

const PORT = 3210
const OWN = 'Desk.Office.example.com'

const isAccepted = (host: string, port = PORT): boolean => hostRule(host, port, OWN) === null

/** Names that stand for this machine or its network, also at the port of the listener. */
const LOCAL = [
  '127.0.0.1',
  '127.0.0.1.',
  '192.168.1.20',
  '203.0.113.9',
  '0.0.0.0',
  '0x7f.1',
  '2130706433',
  '[::1]',
  '[::FFFF:127.0.0.1]',
  '[2001:db8::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'app.localhost',
  'a.b.localhost.',
  'app',
  'my_app',
  'desk',
  'desk.local',
  'Desk.Local.',
  'api.default.svc.cluster.local',
  'host.docker.internal',
  'host.containers.internal',
  'router.home.arpa',
  'desk.office.example.com',
  'DESK.office.example.com.',
] as const

/** Names that a registry gives out, or that are not reserved for machines of a network. */
const PUBLIC = [
  'attacker.test',
  'ATTACKER.TEST',
  'attacker.test.',
  'attacker.example',
  'attacker.invalid',
  'attacker.example.com',
  '127.0.0.1.attacker.com',
  '127-0-0-1.attacker.com',
  'localhost.attacker.com',
  'attackerlocalhost.com',
  'evillocal.com',
  'local.attacker.com',
  'internal.com',
  'xlocalhost.de',
  'home.arpa.attacker.com',
  'other.arpa',
  'xhome.arpa',
  'desk.lan',
  'desk.home',
  'desk.corp',
  'desk.office.example.com.attacker.com',
  'a.desk.office.example.com',
  'office.example.com',
  'attacker%2etest',
  'bücher.example',
  'xn--bcher-kva.example',
  'attacker.test..',
  'localhost..',
  '..',
  '.',
] as const

/** Texts that are not one host with an optional port. */
const MALFORMED = [
  'user@127.0.0.1',
  'user:password@localhost',
  '@localhost',
  'localhost/path',
  'localhost?query',
  'localhost#fragment',
  'localhost\\path',
  '127.0.0.1,localhost',
  'local host',
  '[::1',
  '::1',
  '1.2.3.4.5',
  ':',
  '',
] as const

describe.each(LOCAL)('%s', (name) => {
  test('a local name is accepted at each port', () => {
    const ports = ['', ':', ':80', `:${PORT}`, `:0${PORT}`, ':65535']
    expect(ports.filter((port) => !isAccepted(`${name}${port}`))).toEqual([])
    expect([isAccepted(name, 80), isAccepted(`${name}:80`, 80)]).toEqual([true, true])
  })
})

describe.each(PUBLIC)('%s', (name) => {
  test('a public name is rejected at the port of the listener alone', () => {
    const rejected = [`:${PORT}`, `:0${PORT}`].filter((port) => !isAccepted(`${name}${port}`))
    expect(rejected).toHaveLength(2)
    const others = ['', ':', ':80', ':443', ':3211', ':321']
    expect(others.filter((port) => !isAccepted(`${name}${port}`))).toEqual([])
  })

  test('a public name without a port is rejected where the listener has that of HTTP', () => {
    const hosts = [name, `${name}:`, `${name}:80`]
    expect(hosts.filter((host) => isAccepted(host, 80))).toEqual([])
    expect(isAccepted(`${name}:${PORT}`, 80)).toBe(true)
  })
})

test.each(MALFORMED)('%o is no host, at any port', (host) => {
  const hosts = [host, `${host}:${PORT}`, `${host}:1`]
  expect(hosts.filter((each) => isAccepted(each))).toEqual([])
})

test('the rule has the next step, and nothing that the request has sent', () => {
  const rule = hostRule(`attacker.test:${PORT}`, PORT)
  expect(rule).toContain(`open http://127.0.0.1:${PORT} instead`)
  expect(rule).not.toContain('attacker')
})

const label = fc.stringMatching(/^[a-z](?:[a-z0-9-]{0,20}[a-z0-9])?$/).filter((text) => {
  // Two hyphens there mark names in Punycode, which must be valid.
  return text.slice(2, 4) !== '--'
})
const labels = fc.array(label, { minLength: 1, maxLength: 5 })
const port = fc.integer({ min: 1, max: 65_535 })
/** Writes a name as browsers and tools may: in any case, with the dot of the root or without. */
const spelling = (name: string) =>
  fc.tuple(fc.mixedCase(fc.constant(name)), fc.constantFrom('', '.')).map((parts) => parts.join(''))

const RESERVED = ['localhost', 'local', 'internal', 'home.arpa']

test('a name below a public suffix is accepted exactly where its port is another one', () => {
  const suffix = fc.constantFrom('com', 'co.uk', 'test', 'lan', 'dev', 'arpa', 'local.net')
  const name = fc
    .tuple(labels, suffix)
    .map(([all, last]) => `${all.join('.')}.${last}`)
    .filter((each) => !each.endsWith('home.arpa'))
  const property = fc.property(name.chain(spelling), port, port, (host, own, other) => {
    expect(isAccepted(`${host}:${own}`, own)).toBe(false)
    expect(isAccepted(`${host}:${other}`, own)).toBe(other !== own)
  })
  fc.assert(property)
})

test('names of one label and below the reserved suffixes are accepted in every spelling', () => {
  const name = fc
    .tuple(labels, fc.constantFrom(...RESERVED, null))
    .map(([all, suffix]) => (suffix === null ? all[0]! : `${all.join('.')}.${suffix}`))
  const property = fc.property(name.chain(spelling), port, (host, own) => {
    expect(isAccepted(`${host}:${own}`, own)).toBe(true)
  })
  fc.assert(property)
})

test('no text of any kind is an error', () => {
  const property = fc.property(fc.string({ unit: 'binary' }), port, (host, own) => {
    expect([true, false]).toContain(isAccepted(host, own))
    expect([true, false]).toContain(isAccepted(`${host}:${own}`, own))
  })
  fc.assert(property)
})

/** Orders from Pebble: first ones, renewals, failures, restarts, and other names. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPebble, NO_PEBBLE, type Pebble } from '../../../../testing/servers/pebble.ts'
import type { AcmeSettings } from '../../../settings/acme.ts'
import { orderedPaths, readOrderedPair } from '../../../settings/tls.ts'
import { TestSystem } from '../../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../../telemetry/log.ts'
import { Metrics } from '../../../telemetry/metrics/metrics.ts'
import { type OrderCertificate, orderCertificate } from './acme-authority.ts'
import { AcmeFailure } from './acme-failure.ts'
import { readOrders } from './acme-files.ts'
import { CertificateOrders } from './certificate-orders.ts'
import { ChallengeListener } from './challenge-listener.ts'
import { FAILED_ORDERS_PER_HOUR_MAX } from './order-times.ts'

const HOUR_MILLIS = 3_600_000

describe.skipIf(NO_PEBBLE !== null)('orders from Pebble', () => {
  let pebble: Pebble
  let directory: string
  let settings: AcmeSettings
  let log: MemoryLog
  let system: TestSystem
  let challenges: ChallengeListener
  let issued: number

  beforeAll(async () => {
    pebble = await createPebble()
    await pebble.start()
  })
  afterAll(() => pebble?.dispose())

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'svc-acme-'))
    settings = {
      domains: ['one.test.example', 'two.test.example'],
      email: 'admin@example.com',
      directoryUrl: pebble.directoryUrl,
      authority: readFileSync(pebble.caFile, 'utf8'),
      httpListen: { host: '127.0.0.1', port: pebble.httpPort, loopback: true },
      directory: join(directory, 'acme'),
    }
    log = memoryLog()
    system = new TestSystem({ millis: Date.now() })
    issued = 0
    challenges = listener()
  })

  afterEach(() => {
    challenges.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  const listener = () =>
    new ChallengeListener({
      listen: settings.httpListen,
      domains: settings.domains,
      system,
      log: log.log,
    })
  const pair = () => readOrderedPair(orderedPaths(settings))
  const events = () => log.records().map(({ event }) => event)

  /** Opens the orders as a server does at its start. */
  function open(order: OrderCertificate = orderCertificate): CertificateOrders {
    return new CertificateOrders({
      settings,
      system,
      log: log.log,
      metrics: new Metrics(system),
      challenges,
      pair: pair(),
      onIssued: () => issued++,
      order,
    })
  }

  test('a certificate of all names is issued, and only its user can read the files', {
    tags: ['slow'],
  }, async () => {
    const orders = open()
    expect(orders.health().status).toBe('unavailable')
    await orders.check()
    expect(log.text()).not.toContain('failed')
    expect([...pair()!.hosts].sort()).toEqual(['one.test.example', 'two.test.example'])
    expect(orders.health().status).toBe('healthy')
    expect(issued).toBe(1)
    for (const name of readdirSync(settings.directory)) {
      expect(statSync(join(settings.directory, name)).mode & 0o777).toBe(0o600)
    }
    expect(log.text()).not.toContain('PRIVATE KEY')
    await orders.check()
    expect(issued).toBe(1)
  })

  test.each(['admin@example.com', null])(
    'a renewal is due after two thirds of the lifetime, by the same account of %s',
    { tags: ['slow'] },
    async (email) => {
      settings = { ...settings, email }
      const orders = open()
      await orders.check()
      const first = pair()!
      const account = readFileSync(join(settings.directory, 'account.key'), 'utf8')
      const lifetime = first.endsAtMillis - first.startsAtMillis
      system.advance(lifetime * 0.6)
      await orders.check()
      expect(issued).toBe(1)
      system.advance(lifetime * 0.1)
      await orders.check()
      expect(issued).toBe(2)
      expect(pair()!.key.reveal()).not.toBe(first.key.reveal())
      expect(readFileSync(join(settings.directory, 'account.key'), 'utf8')).toBe(account)
    },
  )

  test('other names are ordered anew, and the certificate before stays until then', {
    tags: ['slow'],
  }, async () => {
    await open().check()
    settings = { ...settings, domains: ['three.test.example'] }
    const orders = open()
    expect(orders.health().status).toBe('healthy')
    expect(pair()!.hosts).toContain('one.test.example')
    await orders.check()
    expect(pair()!.hosts).toEqual(['three.test.example'])
  })

  test('an authority that is down leaves the certificate, and is asked again later', {
    tags: ['slow'],
  }, async () => {
    const orders = open()
    await orders.check()
    const before = pair()!
    await pebble.stop()
    try {
      system.advance((before.endsAtMillis - before.startsAtMillis) * 0.7)
      await orders.check()
      await orders.check()
      expect(events().filter((each) => each === 'server.certificate_order_failed')).toHaveLength(1)
      expect(orders.health().status).toBe('degraded')
      expect(pair()!.certificate).toBe(before.certificate)
      expect(readOrders(settings.directory)?.failure?.reason).toContain('localhost')
    } finally {
      await pebble.start()
    }
    system.advance(HOUR_MILLIS / 6)
    await orders.check()
    expect(issued).toBe(2)
    expect(orders.health().status).not.toBe('degraded')
  })

  test('a rejected challenge is a failure with the reason of the authority', {
    tags: ['slow'],
  }, async () => {
    challenges.stop()
    const orders = open()
    await orders.check()
    expect(pair()).toBeNull()
    const { reason } = readOrders(settings.directory)!.failure!
    expect(reason).toMatch(/test\.example: urn:ietf:params:acme:error:connection/)
    challenges = listener()
    system.advance(HOUR_MILLIS / 6)
    const again = open()
    await again.check()
    expect(issued).toBe(1)
  })

  test('a server that was killed in an order orders again, within the budget', async () => {
    const never: OrderCertificate = () => new Promise(() => undefined)
    for (let i = 0; i < FAILED_ORDERS_PER_HOUR_MAX; i++) void open(never).check()
    writeFileSync(join(settings.directory, '.certificate.pem.0123.tmp'), 'half')
    const orders = open()
    await orders.check()
    expect(issued).toBe(0)
    expect(orders.nextMillis).toBe(system.nowMillis() + HOUR_MILLIS)
    system.advance(HOUR_MILLIS)
    await orders.check()
    expect(issued).toBe(1)
    expect(readdirSync(settings.directory).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test('a stop ends an order in progress, which does not count as failed', async () => {
    const slow: OrderCertificate = ({ signal, onOrder }) => {
      onOrder()
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('ended'))),
      )
    }
    for (let i = 0; i < FAILED_ORDERS_PER_HOUR_MAX; i++) {
      const orders = open(slow)
      const running = orders.check()
      await orders.stop()
      await running
    }
    expect(events()).toEqual([])
    const { orders, failure } = readOrders(settings.directory)!
    expect(orders.map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: FAILED_ORDERS_PER_HOUR_MAX }, () => 'cancelled'),
    )
    expect(failure).toBeNull()
    await open().check()
    expect(issued).toBe(1)
  })

  test.each(['damaged', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'])(
    'a damaged key of the account is a failure that names its file: %j',
    { tags: ['slow'] },
    async (content) => {
      const path = join(settings.directory, 'account.key')
      mkdirSync(settings.directory, { mode: 0o700 })
      writeFileSync(path, content, { mode: 0o600 })
      const orders = open()
      await orders.check()
      expect(readOrders(settings.directory)!.failure!.reason).toContain(
        `${path} has no private key`,
      )
      expect(log.text()).toContain(path)
      expect(readFileSync(path, 'utf8')).toBe(content)
      rmSync(path)
      system.advance(HOUR_MILLIS / 6)
      await orders.check()
      expect(issued).toBe(1)
    },
  )

  test('a time that the authority asks for is respected after a restart', async () => {
    const limited: OrderCertificate = () =>
      Promise.reject(new AcmeFailure('rate limited', { retryAfterMillis: 3 * HOUR_MILLIS }))
    await open(limited).check()
    const orders = open()
    system.advance(2 * HOUR_MILLIS)
    await orders.check()
    expect(issued).toBe(0)
    system.advance(HOUR_MILLIS)
    await orders.check()
    expect(issued).toBe(1)
  })
})

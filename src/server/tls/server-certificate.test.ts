/** The certificate of a server that stops, and the first one that the server orders. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import { orderedPaths, readCertificatePair, readOrderedPair } from '../../settings/tls.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Secret } from '../../value/secret.ts'
import { ShutdownStack } from '../shutdown-stack.ts'
import { CERTIFICATE_CHECK_MILLIS } from './certificate-watch.ts'
import { ServerCertificate } from './server-certificate.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-server-certificate-'))
const path = join(directory, 'pair.pem')
const paths = { certificate: path, key: path }

afterAll(() => rmSync(directory, { recursive: true, force: true }))

function open(): { readonly certificate: ServerCertificate; readonly isWatched: () => boolean } {
  const { certificate, key } = selfSigned('one.test')
  writeFileSync(path, certificate + key, { mode: 0o600 })
  const system = new TestSystem({ millis: Date.now() })
  const metrics = new Metrics(system)
  const settings = {
    tls: { paths, pair: readCertificatePair(paths), acme: null },
    management: { endsTls: true },
    product: null,
  } as unknown as ServerSettings
  return {
    certificate: ServerCertificate.of(settings, { system, log: memoryLog().log, metrics })!,
    isWatched: () => metrics.collect().gauges.certificateRemainingMicros !== undefined,
  }
}

test('the files of the certificate are watched once the server listens', async () => {
  const { certificate, isWatched } = open()
  expect(isWatched()).toBe(false)
  certificate.watch(() => undefined)
  expect(isWatched()).toBe(true)
  await certificate.stop()
})

test('the files of the certificate are not watched after the stop', async () => {
  const { certificate, isWatched } = open()
  await certificate.stop()
  certificate.watch(() => undefined)
  expect(isWatched()).toBe(false)
  expect(certificate.isStopped).toBe(true)
})

describe('a server that orders its first certificate', () => {
  const NAME = 'one.test.example'
  const acme = {
    domains: [NAME],
    email: null,
    directoryUrl: 'https://authority.test/directory',
    authority: null,
    httpListen: { host: '127.0.0.1', port: 0, loopback: true },
    directory: join(directory, 'acme'),
  }
  const orderedPath = join(acme.directory, 'certificate.pem')
  let log: MemoryLog
  let closing: ShutdownStack
  let certificate: ServerCertificate

  const status = () => certificate.health()[0]!.status
  const events = () => log.records().map(({ event }) => event)
  /** Lets the files be looked at, and be seen unchanged. */
  const look = () => vi.advanceTimersByTime(2 * CERTIFICATE_CHECK_MILLIS)

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'setTimeout'] })
    log = memoryLog()
    closing = new ShutdownStack(log.log)
  })

  afterEach(async () => {
    await closing.close()
    vi.useRealTimers()
    rmSync(acme.directory, { recursive: true, force: true })
  })

  /** Orders the first certificate, and calls `onOrdered` between its file and its use. */
  async function order(onOrdered: () => void): Promise<void> {
    const system = new TestSystem({ millis: Date.now() })
    const settings = {
      tls: { paths: orderedPaths(acme), pair: null, acme },
      management: { endsTls: true },
      product: null,
    } as unknown as ServerSettings
    const issued = selfSigned(NAME)
    const info = log.log.info.bind(log.log)
    const logger = {
      ...log.log,
      info: (...given: Parameters<typeof info>) => {
        info(...given)
        if (given[0] === 'server.certificate_ordered') onOrdered()
      },
    }
    certificate = ServerCertificate.of(settings, {
      system,
      log: logger,
      metrics: new Metrics(system),
      order: async () => ({ chain: issued.certificate, key: new Secret(issued.key) }),
    })!
    await certificate.openOrders(closing)
    expect(status()).toBe('unavailable')
    certificate.startOrders(closing)
    await certificate.issued()
  }

  test('a certificate with a damaged file is used, and the file is written again', async () => {
    await order(() => writeFileSync(orderedPath, 'damaged'))
    expect(certificate.pair?.hosts).toEqual([NAME])
    await certificate.openListeners(() => undefined)
    certificate.watch(() => undefined)
    expect(status()).toBe('healthy')
    vi.advanceTimersByTime(CERTIFICATE_CHECK_MILLIS)
    expect(events()).toContain('server.certificate_rejected')
    expect(status()).toBe('degraded')
    look()
    expect(events()).toContain('server.certificate_rewritten')
    expect(status()).toBe('healthy')
    const { hosts } = readOrderedPair(orderedPaths(acme))!
    expect(hosts).toEqual([NAME])
    expect(events()).not.toContain('server.certificate_replaced')
  })

  test('a certificate with a missing file is used, and the file stays missing', async () => {
    await order(() => rmSync(orderedPath))
    expect(certificate.pair?.hosts).toEqual([NAME])
    certificate.watch(() => undefined)
    look()
    expect(status()).toBe('degraded')
    expect(readOrderedPair(orderedPaths(acme))).toBeNull()
  })

  test('a certificate with an unreadable file is used, and the file is read again', async () => {
    await order(() => {
      rmSync(orderedPath)
      mkdirSync(orderedPath)
    })
    expect(certificate.pair?.hosts).toEqual([NAME])
    certificate.watch(() => undefined)
    for (let i = 0; i < 5; i++) look()
    expect(events().filter((each) => each === 'server.certificate_rejected')).toHaveLength(1)
    expect(status()).toBe('degraded')
    rmSync(orderedPath, { recursive: true })
    const { key } = certificate.pair!
    writeFileSync(orderedPath, key.reveal(), { mode: 0o600 })
    look()
    expect(status()).toBe('healthy')
    expect(readFileSync(orderedPath, 'utf8')).toBe(key.reveal())
  })

  test('addresses that cannot be opened are tried again, and reported once', async () => {
    await order(() => undefined)
    let failures = 3
    const opened = certificate.openListeners(() => {
      if (failures-- > 0) throw new Error('no descriptor is free')
    })
    expect(status()).toBe('unavailable')
    expect(events()).toContain('server.certificate_delayed')
    await vi.advanceTimersByTimeAsync(3 * CERTIFICATE_CHECK_MILLIS)
    await opened
    expect(events().filter((each) => each === 'server.certificate_delayed')).toHaveLength(1)
    certificate.watch(() => undefined)
    expect(status()).toBe('healthy')
  })

  test('no address is opened once the server has stopped', async () => {
    await order(() => undefined)
    await certificate.stop()
    let isOpened = false
    await certificate.openListeners(() => {
      isOpened = true
    })
    expect(isOpened).toBe(false)
  })
})

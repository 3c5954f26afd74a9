/** Orders that meet the stop of the server, from an authority that answers when a test says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { selfSigned } from '../../../../testing/certificates.ts'
import type { AcmeSettings } from '../../../settings/acme.ts'
import { orderedPaths, readOrderedPair } from '../../../settings/tls.ts'
import { TestSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import { Metrics } from '../../../telemetry/metrics/metrics.ts'
import { Secret } from '../../../value/secret.ts'
import type { IssuedCertificate, OrderCertificate, OrderOptions } from './acme-authority.ts'
import { readOrders } from './acme-files.ts'
import { CertificateOrders } from './certificate-orders.ts'

const NAME = 'one.test.example'

let directory: string
let settings: AcmeSettings
let issued: number
/** The order in progress. */
let options: OrderOptions | null
let answer: PromiseWithResolvers<IssuedCertificate>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-acme-stop-'))
  settings = {
    domains: [NAME],
    email: null,
    directoryUrl: 'https://authority.test/directory',
    authority: null,
    httpListen: { host: '127.0.0.1', port: 80, loopback: true },
    directory: join(directory, 'acme'),
  }
  issued = 0
  options = null
  answer = Promise.withResolvers()
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

const order: OrderCertificate = (given) => {
  options = given
  given.signal.addEventListener('abort', () => answer.reject(new Error('ended')))
  return answer.promise
}

function open(): CertificateOrders {
  const system = new TestSystem({ millis: Date.now() })
  return new CertificateOrders({
    settings,
    system,
    log: memoryLog().log,
    metrics: new Metrics(system),
    challenges: { publish: () => undefined, withdraw: () => undefined },
    pair: null,
    onIssued: () => issued++,
    order,
  })
}

const outcomes = () => readOrders(settings.directory)!.orders.map(({ outcome }) => outcome)

test('a certificate that arrives during a stop is stored, but not announced', async () => {
  const orders = open()
  let isAnnounced = false
  void orders.issued.then(() => {
    isAnnounced = true
  })
  orders.start()
  options!.onOrder()
  const { certificate: chain, key } = selfSigned(NAME)
  answer.resolve({ chain, key: new Secret(key) })
  await orders.stop()
  // What waits for the first certificate opens the listeners of it.
  await new Promise(setImmediate)
  expect(readOrderedPair(orderedPaths(settings))?.hosts).toEqual([NAME])
  expect(outcomes()).toEqual(['issued'])
  expect({ issued, isAnnounced }).toEqual({ issued: 0, isAnnounced: false })
})

test('a stop before the request that creates the order leaves the budget as it was', async () => {
  const orders = open()
  orders.start()
  expect(outcomes()).toEqual(['pending'])
  await orders.stop()
  expect(outcomes()).toEqual([])
})

test('a stop after the request that creates the order counts it as cancelled', async () => {
  const orders = open()
  orders.start()
  options!.onOrder()
  await orders.stop()
  expect(outcomes()).toEqual(['cancelled'])
})

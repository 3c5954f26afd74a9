/** The reading of ordered certificates: none, a failed order, another authority, a certificate. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { selfSigned } from '../../../../testing/certificates.ts'
import { orderedPaths, type TlsSettings } from '../../../settings/tls.ts'
import { formatCertificateOrders } from '../../../wire/files/certificate-orders.ts'
import { readCertificateOrders } from './certificate-orders.ts'

const DIRECTORY = 'https://ca.example/directory'
const NOW = Date.now()
let directory: string
let tls: TlsSettings

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'svc-orders-')), 'acme')
  mkdirSync(directory, { mode: 0o700 })
  const acme = {
    domains: ['api.example.com'],
    email: null,
    directoryUrl: DIRECTORY,
    authority: null,
    httpListen: { host: '127.0.0.1', port: 80, loopback: true },
    directory,
  }
  tls = { paths: orderedPaths(acme), pair: null, acme }
})
afterEach(() => rmSync(join(directory, '..'), { recursive: true }))

function write(directoryUrl: string): void {
  const failure = { atMillis: NOW - 1_000, reason: 'refused' }
  const record = { version: 1 as const, directoryUrl, orders: [], retryAtMillis: 0, failure }
  writeFileSync(join(directory, 'orders.json'), formatCertificateOrders(record), { mode: 0o600 })
}

test('before the first order there is neither a failure nor a certificate', () => {
  expect(readCertificateOrders(tls, NOW)).toEqual({ failure: null, remainingMillis: null })
})

test('a failed order has its reason and its age, unless it went to another authority', () => {
  write(DIRECTORY)
  expect(readCertificateOrders(tls, NOW).failure).toEqual({ reason: 'refused', ageMillis: 1_000 })
  write('https://other.example/directory')
  expect(readCertificateOrders(tls, NOW).failure).toBeNull()
})

test('a certificate has its end, and a damaged one counts as none', () => {
  const { certificate, key } = selfSigned('api.example.com')
  writeFileSync(tls.paths.certificate, certificate + key, { mode: 0o600 })
  expect(readCertificateOrders(tls, NOW).remainingMillis).toBeGreaterThan(0)
  writeFileSync(tls.paths.certificate, 'damaged', { mode: 0o600 })
  expect(readCertificateOrders(tls, NOW).remainingMillis).toBeNull()
})

/** The certificate of a server that stops. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import { readCertificatePair } from '../../settings/tls.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
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

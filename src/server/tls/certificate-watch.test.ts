/** Certificates that are renewed, half renewed, damaged and gone, by the files of the watch. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import { type CertificatePair, readCertificatePair } from '../../settings/tls.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { CertificateWatch } from './certificate-watch.ts'

const DAY_MILLIS = 86_400_000
const directory = mkdtempSync(join(tmpdir(), 'svc-watch-'))
const paths = {
  certificate: join(directory, 'live/cert.pem'),
  key: join(directory, 'live/key.pem'),
}
const first = selfSigned('first.test')
const second = selfSigned('second.test')

let log: MemoryLog
let now: number
let used: CertificatePair[]
let watch: CertificateWatch

/** Writes the pair into a directory of its own, to which the names of the settings then lead. */
function renew(name: string, certificate: string, key: string): void {
  mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, name, 'cert.pem'), certificate)
  writeFileSync(join(directory, name, 'key.pem'), key, { mode: 0o600 })
  rmSync(join(directory, 'live'), { force: true })
  symlinkSync(join(directory, name), join(directory, 'live'))
}

const system = { nowMillis: () => now }
const events = (): string[] => log.records().map(({ event }) => event)
const names = (): string[] => used.map((pair) => pair.names)

beforeEach(() => {
  renew('first', first.certificate, first.key)
  log = memoryLog()
  used = []
  const pair = readCertificatePair(paths)
  now = pair.endsAtMillis - 60 * DAY_MILLIS
  const onCertificate = (next: CertificatePair) => void used.push(next)
  watch = new CertificateWatch({ paths, pair, system, log: log.log, onCertificate })
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('a certificate that a symbolic link leads to is used once it stayed for a check', () => {
  watch.check()
  renew('second', second.certificate, second.key)
  watch.check()
  expect(names()).toEqual([])
  watch.check()
  expect(names()).toEqual(['DNS:second.test'])
  watch.check()
  expect(names()).toHaveLength(1)
  expect(events()).toEqual(['server.certificate_replaced'])
  expect(watch.pair.names).toBe('DNS:second.test')
})

test('a certificate whose key was not written yet is not read', () => {
  writeFileSync(paths.certificate, second.certificate)
  watch.check()
  writeFileSync(paths.key, second.key)
  watch.check()
  watch.check()
  expect(names()).toEqual(['DNS:second.test'])
  expect(events()).not.toContain('server.certificate_rejected')
})

test('files that do not fit are reported once, and the certificate before stays', () => {
  writeFileSync(paths.key, second.key)
  for (let i = 0; i < 5; i++) watch.check()
  expect(names()).toEqual([])
  expect(events()).toEqual(['server.certificate_rejected'])
  expect(log.text()).not.toContain('PRIVATE KEY')
  writeFileSync(paths.certificate, second.certificate)
  for (let i = 0; i < 3; i++) watch.check()
  expect(names()).toEqual(['DNS:second.test'])
})

test('a watch that begins with damaged files uses them once they are repaired', () => {
  const { pair } = watch
  writeFileSync(paths.certificate, 'damaged')
  const onCertificate = (next: CertificatePair) => void used.push(next)
  const later = new CertificateWatch({ paths, pair, system, log: null, onCertificate })
  for (let i = 0; i < 3; i++) later.check()
  expect(names()).toEqual([])
  expect(later.pair).toBe(pair)
  renew('second', second.certificate, second.key)
  for (let i = 0; i < 3; i++) later.check()
  expect(names()).toEqual(['DNS:second.test'])
})

test('a watch that begins with an earlier certificate than the files uses theirs', () => {
  const { pair } = watch
  renew('second', second.certificate, second.key)
  const onCertificate = (next: CertificatePair) => void used.push(next)
  const later = new CertificateWatch({ paths, pair, system, log: null, onCertificate })
  for (let i = 0; i < 3; i++) later.check()
  expect(names()).toEqual(['DNS:second.test'])
})

test('a certificate that cannot be used at first is tried again, and reported once', () => {
  const { pair } = watch
  let failures = 3
  const onCertificate = (next: CertificatePair) => {
    used.push(next)
    if (failures-- > 0) throw new Error('no descriptor is free')
  }
  const tried = new CertificateWatch({ paths, pair, system, log: log.log, onCertificate })
  renew('second', second.certificate, second.key)
  for (let i = 0; i < 4; i++) tried.check()
  expect(tried.pair).toBe(pair)
  expect(events()).toEqual(['server.certificate_delayed'])
  for (let i = 0; i < 4; i++) tried.check()
  expect(tried.pair.names).toBe('DNS:second.test')
  expect(new Set(used).size).toBe(1)
  expect(used).toHaveLength(4)
  expect(events()).toEqual(['server.certificate_delayed', 'server.certificate_replaced'])
})

test('files that cannot be read at first are read again, and reported once', () => {
  const { pair } = watch
  let failures = 3
  const read = () => {
    if (failures-- > 0) throw new Error('no descriptor is free')
    return readCertificatePair(paths)
  }
  const onCertificate = (next: CertificatePair) => void used.push(next)
  const tried = new CertificateWatch({ paths, pair, system, log: log.log, read, onCertificate })
  renew('second', second.certificate, second.key)
  for (let i = 0; i < 6; i++) tried.check()
  expect(names()).toEqual(['DNS:second.test'])
  expect(events()).toEqual(['server.certificate_rejected', 'server.certificate_replaced'])
})

test('an offered certificate stays in use while its files are damaged', () => {
  const read = () => {
    throw new Error('damaged')
  }
  let failures = 2
  const onCertificate = (next: CertificatePair) => {
    used.push(next)
    if (failures-- > 0) throw new Error('no descriptor is free')
  }
  const { pair } = watch
  const rewritten: CertificatePair[] = []
  const rewrite = (next: CertificatePair) => rewritten.push(next) > 1
  const tried = new CertificateWatch({
    paths,
    pair,
    system,
    log: log.log,
    read,
    rewrite,
    onCertificate,
  })
  renew('second', second.certificate, second.key)
  const offered = readCertificatePair(paths)
  tried.offer(offered)
  expect(tried.isBehind).toBe(true)
  for (let i = 0; i < 5; i++) tried.check()
  expect(tried.pair).toBe(offered)
  expect(used).toEqual([offered, offered, offered])
  // Damaged files are written again until that succeeds, with the newest certificate.
  expect(rewritten).toEqual([offered, offered])
  expect(tried.isBehind).toBe(true)
})

test('files that are gone are reported once, and are used again when they are back', () => {
  unlinkSync(paths.key)
  for (let i = 0; i < 5; i++) watch.check()
  expect(events()).toEqual(['server.certificate_rejected'])
  renew('second', second.certificate, second.key)
  for (let i = 0; i < 3; i++) watch.check()
  expect(names()).toEqual(['DNS:second.test'])
})

test('the same certificate in new files changes nothing', () => {
  renew('copy', first.certificate, first.key)
  for (let i = 0; i < 3; i++) watch.check()
  expect(events()).toEqual([])
  expect(names()).toEqual([])
})

test('a certificate that ends within two weeks is reported, at the start and when it comes', () => {
  const { pair } = watch
  expect(watch.remainingMicros).toBe(60 * DAY_MILLIS * 1000)
  now = pair.endsAtMillis - 13 * DAY_MILLIS
  const late = new CertificateWatch({ paths, pair, system, log: log.log, onCertificate: () => {} })
  expect(events()).toEqual(['server.certificate_ends'])
  now = pair.endsAtMillis + 1
  expect(late.remainingMicros).toBe(0)
})

/** Goal: readings of the machine and of addresses agree with this machine and real servers. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { selfSigned } from '../../../../testing/certificates.ts'
import { realSystem } from '../../../system/system.ts'
import {
  existing,
  parseLimit,
  parseMounts,
  readDisk,
  readMemory,
  readProcess,
  readSync,
} from './machine.ts'
import { readCertificate, readFreeListener, readPublicUrl, readServedListener } from './network.ts'

const system = realSystem()

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'doctor-machine-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const LOCAL = { host: '127.0.0.1', loopback: true }

test('a disk has its sizes, its kind and its floor', () => {
  const disk = readDisk(temporary(), 7)
  expect(disk).toMatchObject({ floorBytes: 7, isWritable: true, kind: expect.stringMatching(/./) })
  expect(disk.freeBytes).toBeGreaterThan(0)
  expect(disk.totalBytes).toBeGreaterThan(disk.freeBytes)
})

test('mounts have their kind and both lists of options, and escaped paths', () => {
  const table = [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,nobarrier',
    '23 1 0:5 / /a\\040b ro - overlay overlay rw',
    '',
  ].join('\n')
  expect(parseMounts(table)).toEqual([
    { at: '/', kind: 'ext4', options: ['rw', 'relatime', 'rw', 'nobarrier'] },
    { at: '/a b', kind: 'overlayfs', options: ['ro', 'rw'] },
  ])
})

test('a measurement of syncs leaves no file', async () => {
  const directory = temporary()
  const { path, medianMicros, slowestMicros } = await readSync(directory, system)
  expect(path).toBe(directory)
  expect(slowestMicros).toBeGreaterThanOrEqual(medianMicros)
  expect(readdirSync(directory)).toEqual([])
})

test('limits of a process are its soft limits', () => {
  const limits =
    'Max processes   unlimited   unlimited  processes\nMax open files   1024   4096  files'
  expect(parseLimit(limits, 'Max open files')).toBe(1024)
  expect(parseLimit(limits, 'Max processes')).toBeNull()
  expect(parseLimit('', 'Max open files')).toBeNull()
  const wanted = { descriptorsWanted: 1, processesWanted: 2 }
  const own = readProcess(wanted)
  expect(own).toMatchObject({ ...wanted, runsAsRoot: process.geteuid?.() === 0 })
})

test('the memory of the control group is less than that of the machine', () => {
  const { targetBytes, machineBytes, groupBytes, kills } = readMemory(3)
  expect([targetBytes, machineBytes]).toEqual([3 * 2 ** 20, totalmem()])
  expect(groupBytes ?? 0).toBeLessThan(machineBytes)
  expect(kills).toBeGreaterThanOrEqual(0)
})

test('the nearest directory that exists is found', () => {
  const directory = temporary()
  expect(existing(join(directory, 'a/b'))).toBe(directory)
})

test('an address is free, taken, served or silent', async () => {
  const other = createServer()
  const port = await listening(other)
  const address = { ...LOCAL, port }
  expect((await readFreeListener(address)).state).toBe('taken')
  expect((await readServedListener(address)).state).toBe('serving')
  await new Promise((resolve) => other.close(resolve))
  expect((await readFreeListener(address)).state).toBe('free')
  expect((await readServedListener(address)).state).toBe('silent')
})

test('a public URL is of this product if it answers the probe', async () => {
  const answers = ['{"status":"live"}', '{"status":"other"}', 'x'.repeat(5_000)]
  const bodies = [...answers]
  const port = await listening(createHttpServer((_, response) => response.end(bodies.shift())))
  const url = `http://127.0.0.1:${port}`
  for (const isThisProduct of [true, false, false]) {
    expect(await readPublicUrl(url)).toEqual({ url, status: 200, isThisProduct })
  }
})

test('a public URL that nothing answers rejects', async () => {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  await expect(readPublicUrl(`http://127.0.0.1:${port}`)).rejects.toMatchObject({
    code: expect.stringMatching(/^E?CONN/),
  })
})

test('a certificate has its end, and the reason why clients reject it', async () => {
  const { certificate: cert, key } = selfSigned('doctor.test')
  const port = await listening(createTlsServer({ cert, key }, (socket) => socket.end()))
  const given = { setting: 'SERVICE_S3_HOST', origin: `https://127.0.0.1:${port}` }
  const reading = await readCertificate(given, system.nowMillis())
  const days = reading.remainingMillis! / 86_400_000
  expect(days).toBeGreaterThan(1)
  expect(days).toBeLessThanOrEqual(2)
  expect(reading.rejection).toMatch(/SELF_SIGNED/)
  const later = await readCertificate(given, system.nowMillis() + 3 * 86_400_000)
  expect(later.remainingMillis).toBeLessThan(0)
})

test('an origin without TLS, and one that nothing answers, have no certificate', async () => {
  const port = await listening(createServer((socket) => socket.end('plain')))
  for (const origin of [`https://127.0.0.1:${port}`, 'https://127.0.0.1:1']) {
    const reading = await readCertificate({ setting: 'X', origin }, 0)
    expect(reading).toMatchObject({ remainingMillis: null, rejection: null })
  }
})

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest'
import {
  minisignPublicFile,
  readMinisignKey,
  readMinisignPublic,
  signMinisign,
} from './minisign.ts'

const MINISIGN = '/usr/bin/minisign'
/** Made by `minisign -G -W` for these tests alone. */
const SECRET = Buffer.concat([
  Buffer.from('RWQAAEIy', 'base64'),
  Buffer.alloc(48),
  Buffer.from(
    'xtQbEbAcwL8ZGj73T0t3lN7HosRXQDh0aiFB8ukSo6uEEv4cNIr2dkyWtgRxFWg483bDmSHjxid4vNjvlZZUhSMLAtHN' +
      'X/zp',
    'base64',
  ),
  Buffer.alloc(32),
])
const PUBLIC = 'RWTG1BsRsBzAv0yWtgRxFWg483bDmSHjxid4vNjvlZZUhSMLAtHNX/zp'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-minisign-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function secretFile(bytes: Buffer): string {
  const path = join(folder, 'secret')
  writeFileSync(path, `untrusted comment: secret key\n${bytes.toString('base64')}\n`)
  return path
}

function changed(at: number, value: number): Buffer {
  const bytes = Buffer.from(SECRET)
  bytes[at] = value
  return bytes
}

function minisign({ skip }: TestContext, ...args: readonly string[]) {
  if (!existsSync(MINISIGN)) skip(`${MINISIGN} is missing: install minisign`)
  return spawnSync(MINISIGN, args, { cwd: folder, encoding: 'utf8', input: '' })
}

function signed(comment = 'svc 1.2.3 2026-01-02T03:04:05Z'): void {
  const key = readMinisignKey(secretFile(SECRET))
  writeFileSync(join(folder, 'list'), 'content\n')
  writeFileSync(join(folder, 'list.minisig'), signMinisign(Buffer.from('content\n'), comment, key))
  writeFileSync(join(folder, 'minisign.pub'), minisignPublicFile(key.publicKey))
}

const VERIFY = ['-V', '-H', '-p', 'minisign.pub', '-m', 'list', '-x', 'list.minisig']

test('a secret key gives the public key that minisign printed for it', () => {
  expect(readMinisignKey(secretFile(SECRET)).publicKey).toBe(PUBLIC)
  signed()
  expect(readFileSync(join(folder, 'minisign.pub'), 'utf8')).toBe(
    `untrusted comment: minisign public key BFC01CB0111BD4C6\n${PUBLIC}\n`,
  )
  expect(readMinisignPublic(join(folder, 'minisign.pub'))).toBe(PUBLIC)
})

test('minisign verifies the prehashed signature and prints its trusted comment', (context) => {
  signed()
  const { status, stdout, stderr } = minisign(context, ...VERIFY)
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Trusted comment: svc 1.2.3 2026-01-02T03:04:05Z\n')
})

test.for([
  ['content', 'list', 'content', 'Content'],
  ['trusted comment', 'list.minisig', 'svc 1.2.3', 'svc 9.2.3'],
])('minisign rejects a changed %s', ([, file, from, to], context) => {
  signed()
  const path = join(folder, file!)
  writeFileSync(path, readFileSync(path, 'utf8').replace(from!, to!))
  expect(minisign(context, ...VERIFY).status).not.toBe(0)
})

test('a key that minisign makes without a password signs what minisign verifies', (context) => {
  minisign(context, '-G', '-W', '-p', 'own.pub', '-s', 'own.sec')
  const key = readMinisignKey(join(folder, 'own.sec'))
  expect(key.publicKey).toBe(readMinisignPublic(join(folder, 'own.pub')))
  writeFileSync(join(folder, 'list'), 'own\n')
  writeFileSync(join(folder, 'list.minisig'), signMinisign(Buffer.from('own\n'), 'a', key))
  expect(minisign(context, '-V', '-q', '-P', key.publicKey, '-m', 'list').status).toBe(0)
})

test('a secret key with a password is rejected with the command that removes it', () => {
  const encrypted = changed(2, 'S'.charCodeAt(0))
  expect(() => readMinisignKey(secretFile(encrypted))).toThrow(/is encrypted.*minisign -C -W/)
})

test('a secret key whose halves do not belong together is rejected', () => {
  expect(() => readMinisignKey(secretFile(changed(70, 7)))).toThrow('is damaged')
})

test('a public key is no secret key, and a text is neither', () => {
  const path = join(folder, 'key')
  writeFileSync(path, minisignPublicFile(PUBLIC))
  expect(() => readMinisignKey(path)).toThrow('is no secret key of minisign')
  writeFileSync(path, 'text')
  expect(() => readMinisignKey(path)).toThrow('is no secret key of minisign')
  expect(() => readMinisignPublic(path)).toThrow('is no public key of minisign')
})

test('a trusted comment has no line feed', () => {
  const key = readMinisignKey(secretFile(SECRET))
  expect(() => signMinisign(Buffer.from(''), 'svc\n1', key)).toThrow('one line')
})

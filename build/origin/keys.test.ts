import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { versionDefine } from '../commit.ts'
import { releaseKeys } from './installer-fixture.ts'
import { publicKeys, signingKeys, writeSignatures } from './keys.ts'

const COMMENT = 'svc 1.2.3 2026-01-02T03:04:05Z'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-keys-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a signed release has both signatures and both public keys', () => {
  const keys = releaseKeys()
  writeSignatures(folder, 'list\n', COMMENT, keys)
  const files = ['SHA256SUMS.minisig', 'SHA256SUMS.sig', 'minisign.pub', 'release.pub']
  expect(readdirSync(folder).sort()).toEqual(files)
  const signature = readFileSync(join(folder, 'SHA256SUMS.sig'))
  expect(verify('sha256', Buffer.from('list\n'), keys.pem, signature)).toBe(true)
  const lines = readFileSync(join(folder, 'SHA256SUMS.minisig'), 'utf8').split('\n')
  expect(lines[2]).toBe(`trusted comment: ${COMMENT}`)
})

test('a rebuilt release has the public keys of the first one and signs nothing', () => {
  const keys = releaseKeys()
  writeSignatures(folder, 'list\n', COMMENT, keys)
  const rebuilt = publicKeys(folder)
  expect(rebuilt).toEqual({
    pem: keys.pem,
    minisign: keys.minisign,
    signer: null,
    minisigner: null,
  })
  const out = join(folder, 'out')
  writeSignatures(out, 'list\n', COMMENT, rebuilt)
  expect(publicKeys(out)).toEqual({ pem: '', minisign: '', signer: null, minisigner: null })
})

test('a key of another curve is rejected', () => {
  const path = join(folder, 'key.pem')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  expect(() => signingKeys({ SVC_RELEASE_KEY_FILE: path })).toThrow('is no P-256 private key')
  expect(signingKeys({})).toEqual({ pem: '', minisign: '', signer: null, minisigner: null })
})

test.each(['', 'RWTG1BsRsBzAv0yWtgRxFWg483bDmSHjxid4vNjvlZZUhSMLAtHNX/zp'])(
  'a bundle of a release has its public key: "%s"',
  async (publicKey) => {
    const result = await build({
      entryPoints: ['src/value/version.ts'],
      bundle: true,
      write: false,
      format: 'esm',
      define: versionDefine({ publicKey, upgradeUrl: '' }),
    })
    const path = join(folder, 'version.mjs')
    writeFileSync(path, result.outputFiles[0]!.text)
    expect((await import(path)).RELEASE_PUBLIC_KEY).toBe(publicKey)
  },
)

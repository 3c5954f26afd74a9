import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { MinisignKey } from '../../../testing/client/signed-releases.ts'
import { parsePublicKey, verifySignature } from './minisign.ts'

/** Made by minisign 0.11, with keys that exist nowhere else. */
const KEY = 'RWSDvyiwXoGI2AlT/uZZXxryiJEaqPFHheZcA1ZLXuL3gxhwBb30g3IT'
const CONTENT = Buffer.from(
  '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881' +
    '  svc-0.6.0-linux-x64.tar.gz\n',
)
const COMMENT = 'svc 0.6.0 2026-11-27T05:00:00Z'
const signature = (first: string, second: string): string =>
  `untrusted comment: signature from minisign secret key\n${first}\n` +
  `trusted comment: ${COMMENT}\n${second}\n`
const OVER_DIGEST = signature(
  'RUSDvyiwXoGI2PcMF/ljsuz6+XIkLRJh4ZT2OlQ7E17agP2ZMFxEWjcdEMby4rrDn/A8YqatyOpOuK/oSgD1g7PFYn9vGS6MVQk=',
  'Q8n7x45UPioepvSja7CQgVT2YwgpIGAocMDhirDjt0sLYgL7C9Lcku6APBYR8EUT6xzvqyiRtyDayT89ZhgSAg==',
)
const OVER_FILE = signature(
  'RWSDvyiwXoGI2BL2kFHGF1yf7pSsn0mfOJRWtLWi0Xruq64t2uV1wSP7u66JqJL5NPI5p+BNLm5mAJpigaMb1s7B0kDOr4ETRAU=',
  'THTQrBX7fGrSQTU8AdUOd8uKmypPwLXbxlWwwrWbjRaWggbXFyGx4RDbINeFvhOff8ZnU9foSlz1DfaxjpqiDQ==',
)
const OF_OTHER_KEY = signature(
  'RUQe9F/Z9u5dHrlcqztN+QYHtftsSKBxX5hCrIezW0wgqN3jksmNPPQm4QkBkIl2CeMxFGAxb44dx8BgWczs0Ot5DdYJl8bVKg4=',
  'MEVRYSXOJeAM/v3HdOVYUxxMKi3Jx+4eKnljte/g73y0OqH6BlEq9L07L5UISXMWw3iiVPpyLJG5Xy6Iy/n+Cw==',
)

const key = parsePublicKey(KEY)!
const verify = (text: string, content: Uint8Array = CONTENT) => verifySignature(key, text, content)

test('a signature of minisign over a digest is verified, with its comment', () => {
  expect(verify(OVER_DIGEST)).toEqual({ problem: null, trustedComment: COMMENT })
  expect(key.id).toBe('D888815EB028BF83')
})

test('a public key is read from its file and from its text, and from nothing else', () => {
  const file = `untrusted comment: minisign public key D888815EB028BF83\n${KEY}\n`
  expect(parsePublicKey(file)?.id).toBe(key.id)
  const others = ['', 'RWS', `${KEY}A`, `${KEY}\n${KEY}`, `comment\n${KEY}`, `${file}${KEY}\n`]
  for (const text of [...others, KEY.replace('RW', 'RU'), KEY.replace('/', '_')]) {
    expect(parsePublicKey(text), text).toBeNull()
  }
})

test.each([
  ['of the older kind', OVER_FILE, 'legacy'],
  ['of another key', OF_OTHER_KEY, 'other-key'],
  ['with another comment', OVER_DIGEST.replace('svc 0.6.0', 'svc 0.7.0'), 'comment'],
  ['with the signature of another file', mix(OVER_DIGEST, OVER_FILE), 'comment'],
  ['without its comment', OVER_DIGEST.split('\n').slice(0, 2).join('\n'), 'form'],
  ['with a line behind it', `${OVER_DIGEST}more\n`, 'form'],
  ['with spaces in its base64', OVER_DIGEST.replace('RUSD', 'RU SD'), 'form'],
  ['of an unknown algorithm', OVER_DIGEST.replace('RUSD', 'RVSD'), 'form'],
])('a signature %s is rejected', (_, text, problem) => {
  expect(verify(text)).toEqual({ problem })
})

/** Returns the first signature with the signature of the comment of the other. */
function mix(one: string, other: string): string {
  const lines = one.split('\n')
  lines[3] = other.split('\n')[3]!
  return lines.join('\n')
}

test('no signature with a changed byte and no cut one is accepted', () => {
  const bytes = Buffer.from(OVER_DIGEST)
  // The untrusted comment may change; everything behind it may not.
  const start = OVER_DIGEST.indexOf('\n') + 1
  for (let at = start; at < bytes.length - 1; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    expect(verify(changed.toString('utf8')).problem, `byte ${at}`).not.toBeNull()
    expect(verify(OVER_DIGEST.slice(0, at)).problem, `cut at ${at}`).not.toBeNull()
  }
})

test('no changed byte of the signed file is accepted', () => {
  for (let at = 0; at < CONTENT.length; at++) {
    const changed = Buffer.from(CONTENT)
    changed[at]! ^= 0x80
    expect(verify(OVER_DIGEST, changed)).toEqual({ problem: 'content' })
  }
  expect(verify(OVER_DIGEST, CONTENT.subarray(1))).toEqual({ problem: 'content' })
})

const hasMinisign = spawnSync('minisign', ['-v']).status === 0

describe.skipIf(!hasMinisign)('the minisign of this machine (skipped: it is not installed)', () => {
  it('makes signatures that are verified, and verifies those of the tests', () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-minisign-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const minisign = (...args: readonly string[]) =>
      spawnSync('minisign', args, { cwd: directory, encoding: 'utf8' })
    const path = (name: string): string => join(directory, name)
    expect(minisign('-G', '-W', '-p', 'key.pub', '-s', 'key').status).toBe(0)
    writeFileSync(path('file'), CONTENT)
    expect(minisign('-S', '-s', 'key', '-m', 'file', '-t', COMMENT).status).toBe(0)
    const own = parsePublicKey(readFileSync(path('key.pub'), 'utf8'))!
    const made = readFileSync(path('file.minisig'), 'utf8')
    expect(verifySignature(own, made, CONTENT)).toEqual({ problem: null, trustedComment: COMMENT })
    const test = new MinisignKey()
    writeFileSync(path('file.minisig'), test.sign(CONTENT, COMMENT))
    const verified = minisign('-V', '-P', test.text, '-m', 'file')
    expect(verified.stdout + verified.stderr).toContain('comment signature verified')
  })
})

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { file, type Member, tar } from '../../../build/archives.ts'
import { unpackRelease } from './archives.ts'

let work: string
beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'svc-archive-'))
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

const EXECUTABLE = file('svc-server', 'program', 0o755)

function unpack(bytes: Uint8Array): Promise<void> {
  const archive = join(work, 'archive')
  rmSync(join(work, 'to'), { recursive: true, force: true })
  rmSync(join(work, 'svc-server'), { force: true })
  writeFileSync(archive, bytes)
  return unpackRelease(archive, {
    executable: join(work, 'svc-server'),
    others: join(work, 'to'),
  })
}

function packed(members: readonly Member[]): Buffer {
  return gzipSync(tar(members, 0))
}

const untrusted = (detail: string) =>
  expect.objectContaining({
    code: 'CLIENT_UPGRADE_UNTRUSTED',
    detail: expect.stringContaining(detail),
  })

test('the executable and all other members are unpacked, of any size', async () => {
  const large = Buffer.alloc(300_001, 'x')
  const pages = file('share/man/man1/svc.1', 'page')
  await unpack(packed([pages, { ...EXECUTABLE, bytes: large }, file('empty', '')]))
  expect(readFileSync(join(work, 'svc-server')).equals(large)).toBe(true)
  expect(readFileSync(join(work, 'to/share/man/man1/svc.1'), 'utf8')).toBe('page')
  expect(readFileSync(join(work, 'to/empty'), 'utf8')).toBe('')
})

test('other members are checked and left out where they are not wanted', async () => {
  writeFileSync(join(work, 'archive'), packed([EXECUTABLE, file('LICENSE', 'text')]))
  const to = { executable: join(work, 'svc-server'), others: null }
  await unpackRelease(join(work, 'archive'), to)
  expect(readdirSync(work).sort()).toEqual(['archive', 'svc-server'])
})

test.each([
  '../svc-server',
  '/etc/passwd',
  'a/../../b',
  'a/./b',
  './svc-server',
  'a//b',
  'a/',
  '.hidden',
  'a\\b',
  'C:a',
])('a member named %s rejects the archive', async (path) => {
  await expect(unpack(packed([EXECUTABLE, file(path, 'x')]))).rejects.toEqual(
    untrusted('a name that is not safe'),
  )
  expect(existsSync(join(work, '..', 'b'))).toBe(false)
})

test.each(['symlink', 'hardlink', 'directory'] as const)(
  'a %s rejects the archive',
  async (type) => {
    const member: Member = { ...file('other', ''), type, target: '/etc/passwd' }
    await expect(unpack(packed([member, EXECUTABLE]))).rejects.toEqual(
      untrusted('not a regular file'),
    )
  },
)

test('a name that comes twice rejects the archive', async () => {
  await expect(unpack(packed([EXECUTABLE, EXECUTABLE]))).rejects.toEqual(untrusted('twice'))
})

test('an archive without the executable is rejected', async () => {
  await expect(unpack(packed([file('LICENSE', 'x')]))).rejects.toEqual(untrusted('no svc-server'))
})

test('a member that is larger than any release rejects the archive', async () => {
  for (const path of ['svc-server', 'LICENSE']) {
    const bytes = tar([file(path, '')], 0)
    bytes.write('77777777777\0', 124, 'latin1')
    bytes.write('        ', 148, 'latin1')
    const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    await expect(unpack(gzipSync(bytes))).rejects.toEqual(untrusted('larger than a release'))
  }
})

test('more members than any release has reject the archive', { tags: ['slow'] }, async () => {
  const many = Array.from({ length: 1_001 }, (_, i) => file(`file${i}`, ''))
  await expect(unpack(packed(many))).rejects.toEqual(untrusted('larger than a release'))
})

test('an archive that is cut at any block, or continues behind its end, is rejected', async () => {
  const whole = tar([EXECUTABLE, file('LICENSE', 'x'.repeat(700))], 0)
  for (let at = 0; at < whole.length; at += 256) {
    const cut = unpack(gzipSync(whole.subarray(0, at)))
    await expect(cut, `cut at ${at}`).rejects.toEqual(untrusted('archive'))
  }
  const more = Buffer.concat([whole, tar([file('more', 'x')], 0)])
  await expect(unpack(gzipSync(more))).rejects.toEqual(untrusted('continues behind its end'))
  const endless = Buffer.concat([whole, Buffer.alloc(128 * 1024)])
  await expect(unpack(gzipSync(endless))).rejects.toEqual(untrusted('does not end'))
})

test('a compressed stream that is cut or damaged is rejected', async () => {
  const bytes = packed([EXECUTABLE, file('LICENSE', 'text')])
  for (const at of [1, 10, 40, bytes.length - 9, bytes.length - 1]) {
    const cut = unpack(bytes.subarray(0, at))
    await expect(cut, `cut at ${at}`).rejects.toEqual(untrusted('archive'))
  }
  const changed = Buffer.from(bytes)
  changed[bytes.length - 6]! ^= 1
  await expect(unpack(changed)).rejects.toEqual(untrusted('damaged'))
})

test('a header with a changed byte rejects the archive', async () => {
  for (const at of [2, 101, 125, 140, 156, 260, 330, 346]) {
    const bytes = tar([EXECUTABLE], 0)
    bytes[at]! ^= 4
    await expect(unpack(gzipSync(bytes)), `byte ${at}`).rejects.toEqual(untrusted('archive'))
  }
})

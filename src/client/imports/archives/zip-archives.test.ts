import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ZipFile, zipOf } from '../../../../testing/imports/zip-writer.ts'
import { readWhole } from './export-files.ts'
import { EXPORT_LINE_BYTES_MAX, linesOf } from './lines.ts'
import { openExport } from './open-export.ts'

let directory: string
let archives = 0
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-zip-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function written(bytes: Uint8Array): string {
  const path = join(directory, `${++archives}.zip`)
  writeFileSync(path, bytes)
  return path
}

async function contents(bytes: Uint8Array): Promise<Record<string, string>> {
  const files = await openExport(written(bytes))
  try {
    const found: Record<string, string> = {}
    for (const name of files.names) {
      found[name] = Buffer.from(await readWhole(files, name, 2 ** 30)).toString('utf8')
    }
    return found
  } finally {
    files.close()
  }
}

const FILE: ZipFile = { name: 'a/b.txt', content: 'some content' }
const long = 'x'.repeat(300_000)

describe('an archive', () => {
  it('an archive is read, also with the sizes of ZIP64', async () => {
    const files = [
      FILE,
      { name: 'ü.txt', content: long },
      { name: 'stored', content: long, stored: true },
      { name: 'empty', content: '' },
      { name: 'folder/', content: '' },
    ]
    const expected = { 'a/b.txt': 'some content', 'ü.txt': long, stored: long, empty: '' }
    expect(await contents(zipOf(files))).toEqual(expected)
    expect(await contents(zipOf(files, { zip64: true }))).toEqual(expected)
  })

  it('an archive with a comment behind its end is read', async () => {
    const archive = zipOf([FILE])
    const comment = Buffer.from('comment')
    const end = Buffer.from(archive)
    end.writeUInt16LE(comment.length, end.length - 2)
    expect(await contents(Buffer.concat([end, comment]))).toEqual({ 'a/b.txt': 'some content' })
  })

  it.each<[string, readonly ZipFile[], string]>([
    ['a path upwards', [{ ...FILE, name: '../b' }], 'no path inside'],
    ['a path upwards in the middle', [{ ...FILE, name: 'a/../../b' }], 'no path inside'],
    ['an absolute path', [{ ...FILE, name: '/etc/passwd' }], 'no path inside'],
    ['a path of another system', [{ ...FILE, name: '..\\b' }], 'no path inside'],
    ['a drive', [{ ...FILE, name: 'C:b' }], 'no path inside'],
    ['a NUL in a name', [{ ...FILE, name: 'a\0b' }], 'no path inside'],
    ['one name twice', [FILE, FILE], 'twice'],
    ['a symbolic link', [{ ...FILE, says: { mode: 0o120777 } }], 'is a link'],
    ['an encrypted file', [{ ...FILE, says: { flags: 9 } }], 'is encrypted'],
    ['another compression', [{ ...FILE, says: { method: 14 } }], 'compression method 14'],
    ['overlapping files', [FILE, { ...FILE, name: 'c', says: { offset: 0 } }], 'overlap'],
    ['a file behind its end', [{ ...FILE, says: { offset: 10_000 } }], 'is damaged'],
    ['too much content', [{ ...FILE, says: { bytes: 2 ** 32 - 2 } }], 'unpack to'],
    ['more content than it says', [{ name: 'a', content: long, says: { bytes: 9 } }], 'another'],
    ['less content than it says', [{ name: 'a', content: 'x', says: { bytes: 9 } }], 'another'],
    ['another checksum', [{ ...FILE, says: { crc: 1 } }], 'another content'],
  ])('an archive with %s is rejected', async (_, files, message) => {
    await expect(contents(zipOf(files))).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining(message),
    })
  })

  it('an archive that announces too many files is rejected before them', async () => {
    const archive = Buffer.from(zipOf([FILE], { zip64: true }))
    archive.writeBigUInt64LE(10n ** 12n, archive.length - 22 - 20 - 56 + 32)
    await expect(contents(archive)).rejects.toMatchObject({
      detail: expect.stringContaining('more than 1000000 files'),
    })
  })

  it('an archive that is cut anywhere is rejected, and nothing else happens', async () => {
    const archive = zipOf([FILE, { name: 'c', content: long }])
    for (let length = 0; length < archive.length; length += 37) {
      await expect(contents(archive.subarray(0, length))).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
      })
    }
  })

  it('an archive whose compressed bytes are damaged is rejected', async () => {
    const archive = Buffer.from(zipOf([{ name: 'c', content: long }]))
    archive.fill(0xff, 40, 60)
    await expect(contents(archive)).rejects.toMatchObject({ code: 'CLIENT_EXPORT_INVALID' })
  })
})

it('a directory is read as an archive is, and a link in it is rejected', async () => {
  const root = join(directory, 'export')
  mkdirSync(join(root, 'a'), { recursive: true })
  writeFileSync(join(root, 'a/b.txt'), 'some content')
  const files = await openExport(root)
  expect(files.names).toEqual(['a/b.txt'])
  expect(files.sizeOf('a/b.txt')).toBe(12)
  expect(Buffer.from(await readWhole(files, 'a/b.txt', 12)).toString()).toBe('some content')
  symlinkSync('/etc/passwd', join(root, 'link'))
  await expect(openExport(root)).rejects.toMatchObject({
    detail: 'link is neither a file nor a directory.',
  })
})

it('an export is one file of JSON, and may be named by a symbolic link', async () => {
  const root = join(directory, 'single')
  mkdirSync(root)
  writeFileSync(join(root, 'users.json'), '[]')
  writeFileSync(join(root, 'other.txt'), 'x')
  symlinkSync(join(root, 'users.json'), join(directory, 'link'))
  symlinkSync(root, join(directory, 'link-of-directory'))
  for (const path of [join(root, 'users.json'), join(directory, 'link')]) {
    const files = await openExport(path)
    expect(files.names).toEqual(['users.json'])
    expect(files.has('other.txt')).toBe(false)
    expect(Buffer.from(await readWhole(files, 'users.json', 2)).toString()).toBe('[]')
  }
  const linked = await openExport(join(directory, 'link-of-directory'))
  expect(linked.names).toEqual(['other.txt', 'users.json'])
  await expect(openExport(join(directory, 'missing'))).rejects.toMatchObject({
    code: 'CLIENT_FILE_FAILED',
    detail: `${join(directory, 'missing')} does not exist.`,
  })
  await expect(openExport('/dev/null')).rejects.toMatchObject({
    detail: '/dev/null is neither a file nor a directory.',
  })
})

it('lines are split at any chunk, and one that is too long is rejected', async () => {
  const text = Buffer.from('first\r\n\nsecond\nthïrd')
  const split = async (...chunks: Uint8Array[]) => {
    const found: [number, string][] = []
    const stream = (async function* () {
      yield* chunks
    })()
    for await (const { number, content } of linesOf('x', stream)) {
      found.push([number, Buffer.from(content).toString('utf8')])
    }
    return found
  }
  for (let at = 0; at <= text.length; at++) {
    expect(await split(text.subarray(0, at), text.subarray(at))).toEqual([
      [1, 'first'],
      [3, 'second'],
      [4, 'thïrd'],
    ])
  }
  const chunk = new Uint8Array(EXPORT_LINE_BYTES_MAX / 4 + 1).fill(65)
  await expect(split(chunk, chunk, chunk, chunk)).rejects.toMatchObject({
    detail: expect.stringContaining('Line 1 of x'),
  })
})

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  absolutePath,
  ensurePrivateDirectory,
  FileFailure,
  type FileReason,
  isReadableByOthers,
  isRootPath,
  readProtectedFile,
  readSecretFile,
  removeFileDurably,
  restrictToOwner,
  writeFileAtomic,
} from './files.ts'

let dir = ''
const at = (name: string): string => join(dir, name)
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'files-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

/** Not every container lets a process trace another. */
const canTrace = spawnSync('strace', ['true']).status === 0

function reasonOf(work: () => unknown): FileReason | 'none' {
  try {
    work()
  } catch (error) {
    if (error instanceof FileFailure) return error.reason
    throw error
  }
  return 'none'
}

describe('readSecretFile', () => {
  const read = (path: string, bytesMax = 100) => readSecretFile(path, { bytesMax })

  it('readSecretFile reads a file up to the bound and rejects one byte more', () => {
    writeFileSync(at('full'), 'x'.repeat(100))
    writeFileSync(at('over'), 'x'.repeat(101))
    writeFileSync(at('empty'), '')
    expect(read(at('full'))).toHaveLength(100)
    expect(reasonOf(() => read(at('over')))).toBe('too_large')
    expect(read(at('empty'))).toHaveLength(0)
  })

  it('readSecretFile bounds a file whose content is longer than its size', () => {
    // Files under /proc report the size 0.
    expect(reasonOf(() => read('/proc/self/maps'))).toBe('too_large')
  })

  const kinds: readonly (readonly [string, FileReason, (path: string) => void])[] = [
    ['nothing', 'missing', () => {}],
    ['a symbolic link', 'symlink', (path) => symlinkSync('/etc/passwd', path)],
    ['a dangling link', 'symlink', (path) => symlinkSync('/nowhere', path)],
    ['a FIFO', 'not_regular', (path) => spawnSync('mkfifo', [path])],
    ['a directory', 'not_regular', (path) => mkdirSync(path)],
  ]
  it.each(kinds)('readSecretFile rejects %s without blocking', (_what, reason, make) => {
    make(at('file'))
    const start = performance.now()
    expect(reasonOf(() => read(at('file')))).toBe(reason)
    expect(performance.now() - start).toBeLessThan(60_000)
  })

  it.each([
    ['/dev/zero', 'not_regular'],
    ['relative', 'not_absolute'],
    ['', 'not_absolute'],
    ['/nul\0byte', 'not_absolute'],
    ['/etc/passwd/x', 'not_directory'],
  ])('readSecretFile rejects %j', (path, reason) => {
    expect(reasonOf(() => read(path))).toBe(reason)
  })

  it('readSecretFile never follows a link that replaces the file', { tags: ['slow'] }, async () => {
    // A second thread replaces the file by a link and back, as fast as it can, until the link and
    // the file were both met: this thread may wait for a processor meanwhile.
    writeFileSync(at('outside'), 'outside')
    const met = new Int32Array(new SharedArrayBuffer(4))
    const workerData = { dir, swaps: 10_000, met }
    const worker = new Worker(SWAPPER, { eval: true, workerData })
    let running = true
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    void ended.then(() => {
      running = false
    })
    const seen = new Map<string, number>()
    while (running) {
      for (let i = 0; i < 50; i++) {
        let result: string
        try {
          result = text(read(at('file')))
        } catch (error) {
          result = (error as FileFailure).reason
        }
        seen.set(result, (seen.get(result) ?? 0) + 1)
      }
      if (seen.has('inside') && seen.has('symlink')) Atomics.store(met, 0, 1)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(
      [...seen.keys()].filter((key) => !['inside', 'symlink', 'missing'].includes(key)),
    ).toEqual([])
    expect(seen.get('inside')).toBeGreaterThan(0)
    expect(seen.get('symlink')).toBeGreaterThan(0)
  })
})

const SWAPPER = `
  const fs = require('node:fs')
  const { dir, swaps, met } = require('node:worker_threads').workerData
  for (let i = 0; i < swaps || Atomics.load(met, 0) === 0; i++) {
    if (i % 2 === 0) fs.writeFileSync(dir + '/next', 'inside')
    else fs.symlinkSync(dir + '/outside', dir + '/next')
    fs.renameSync(dir + '/next', dir + '/file')
  }
`

describe('readProtectedFile', () => {
  const reason = () => reasonOf(() => readProtectedFile(at('file'), { bytesMax: 100 }))

  it('readProtectedFile reads files that others cannot write', () => {
    writeFileSync(at('file'), 'x')
    for (const mode of [0o600, 0o664, 0o444]) {
      chmodSync(at('file'), mode)
      expect(text(readProtectedFile(at('file'), { bytesMax: 100 }))).toBe('x')
      expect(isReadableByOthers(at('file'))).toBe(mode !== 0o600)
    }
    chmodSync(at('file'), 0o600)
    symlinkSync(at('file'), at('link'))
    expect(isReadableByOthers(at('link'))).toBe(false)
    chmodSync(at('file'), 0o644)
    expect(isReadableByOthers(at('link'))).toBe(true)
    expect(isReadableByOthers(at('missing'))).toBe(false)
  })

  it('readProtectedFile rejects files that others can write or replace', () => {
    writeFileSync(at('file'), 'x')
    chmodSync(at('file'), 0o602)
    expect(reason()).toBe('not_protected')
    chmodSync(at('file'), 0o600)
    chmodSync(dir, 0o707)
    expect(reason()).toBe('replaceable')
    chmodSync(dir, 0o1707)
    expect(reason()).toBe('none')
  })

  it('readProtectedFile checks the directory that a link points to', () => {
    mkdirSync(at('open'))
    writeFileSync(at('open/file'), 'x', { mode: 0o600 })
    chmodSync(at('open'), 0o777)
    symlinkSync(at('open'), at('link'))
    const read = () => readProtectedFile(at('link/file'), { bytesMax: 100 })
    expect(reasonOf(read)).toBe('replaceable')
  })
})

describe('restrictToOwner', () => {
  it('restrictToOwner removes the permissions of others once', () => {
    writeFileSync(at('file'), 'x')
    chmodSync(at('file'), 0o644)
    expect(restrictToOwner(at('file'))).toEqual({ before: 0o644, after: 0o600 })
    expect(restrictToOwner(at('file'))).toBeNull()
    expect(statSync(at('file')).mode & 0o777).toBe(0o600)
  })

  it('restrictToOwner does not follow a link', () => {
    writeFileSync(at('file'), 'x')
    chmodSync(at('file'), 0o644)
    symlinkSync(at('file'), at('link'))
    expect(reasonOf(() => restrictToOwner(at('link')))).toBe('symlink')
    expect(statSync(at('file')).mode & 0o777).toBe(0o644)
  })

  it.runIf(process.getuid?.() === 0)('the file of another user is left alone (as root)', () => {
    writeFileSync(at('file'), 'x')
    chmodSync(at('file'), 0o644)
    chownSync(at('file'), 65534, 65534)
    expect(restrictToOwner(at('file'))).toBeNull()
    expect(statSync(at('file')).mode & 0o777).toBe(0o644)
  })
})

describe('writeFileAtomic', () => {
  it('writeFileAtomic writes bytes and text, and replaces an existing file', () => {
    writeFileAtomic(at('file'), Uint8Array.of(1, 2, 3))
    expect([...readFileSync(at('file'))]).toEqual([1, 2, 3])
    writeFileAtomic(at('file'), 'grün')
    expect(readFileSync(at('file'), 'utf8')).toBe('grün')
    expect(readdirSync(dir)).toEqual(['file'])
  })

  it('a change of the mode sets it exactly, regardless of the umask and the old mode', () => {
    writeFileSync(at('file'), 'old')
    chmodSync(at('file'), 0o644)
    const umask = process.umask(0)
    try {
      writeFileAtomic(at('file'), 'new')
      expect(statSync(at('file')).mode & 0o777).toBe(0o600)
      process.umask(0o777)
      writeFileAtomic(at('open'), 'new', { mode: 0o644 })
      expect(statSync(at('open')).mode & 0o777).toBe(0o644)
    } finally {
      process.umask(umask)
    }
  })

  it('writeFileAtomic replaces a link instead of writing through it', () => {
    writeFileSync(at('target'), 'untouched')
    symlinkSync(at('target'), at('file'))
    writeFileAtomic(at('file'), 'new')
    expect(readFileSync(at('target'), 'utf8')).toBe('untouched')
    expect(readFileSync(at('file'), 'utf8')).toBe('new')
  })

  it('writeFileAtomic leaves no temporary file behind when it fails', () => {
    mkdirSync(at('file'))
    expect(reasonOf(() => writeFileAtomic(at('file'), 'new'))).toBe('not_regular')
    expect(readdirSync(dir)).toEqual(['file'])
    expect(reasonOf(() => writeFileAtomic(at('none/file'), 'new'))).toBe('missing')
    expect(reasonOf(() => writeFileAtomic('file', 'new'))).toBe('not_absolute')
  })

  it.skipIf(!canTrace)('the file is synced before the rename and the directory after it', () => {
    const module = JSON.stringify(join(import.meta.dirname, 'files.ts'))
    const script = `import { writeFileAtomic } from ${module}
      writeFileAtomic(process.argv.at(-1), 'content')`
    writeFileSync(at('script.ts'), script)
    const trace = ['-f', '-e', 'trace=fsync,rename,renameat,renameat2', '-o', at('trace')]
    const ran = spawnSync('strace', [...trace, process.execPath, at('script.ts'), at('file')], {
      // Its cache of compiled text is renamed into place, too.
      env: { BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' },
    })
    expect(ran.status).toBe(0)
    const calls = [...readFileSync(at('trace'), 'utf8').matchAll(/\b(fsync|rename)\w*\(/g)]
    expect(calls.map(([, name]) => name)).toEqual(['fsync', 'rename', 'fsync'])
  })
})

describe('removeFileDurably', () => {
  it('removeFileDurably removes a file and returns whether there was one', () => {
    writeFileSync(at('file'), '')
    expect(removeFileDurably(at('file'))).toBe(true)
    expect(removeFileDurably(at('file'))).toBe(false)
  })

  it('removeFileDurably removes a link, not its target', () => {
    writeFileSync(at('target'), '')
    symlinkSync(at('target'), at('file'))
    removeFileDurably(at('file'))
    expect(existsSync(at('target'))).toBe(true)
  })
})

describe('ensurePrivateDirectory', () => {
  it('ensurePrivateDirectory creates the directory and its parents for the owner alone', () => {
    const umask = process.umask(0)
    try {
      ensurePrivateDirectory(at('a/b/c'))
    } finally {
      process.umask(umask)
    }
    for (const name of ['a', 'a/b', 'a/b/c']) expect(statSync(at(name)).mode & 0o777).toBe(0o700)
    ensurePrivateDirectory(at('a/b/c'))
  })

  it.each([0o700, 0o750, 0o755])('an existing directory with mode %o is accepted', (mode) => {
    mkdirSync(at('state'))
    chmodSync(at('state'), mode)
    ensurePrivateDirectory(at('state'))
  })

  it.each([0o720, 0o702, 0o777, 0o1777])('a directory with mode %o is rejected', (mode) => {
    mkdirSync(at('state'))
    chmodSync(at('state'), mode)
    expect(reasonOf(() => ensurePrivateDirectory(at('state')))).toBe('not_private')
  })

  it('ensurePrivateDirectory rejects a link, a file and a relative path', () => {
    mkdirSync(at('real'), { mode: 0o700 })
    symlinkSync(at('real'), at('link'))
    symlinkSync('/nowhere/at/all', at('dangling'))
    writeFileSync(at('file'), '')
    expect(reasonOf(() => ensurePrivateDirectory(at('link')))).toBe('symlink')
    expect(reasonOf(() => ensurePrivateDirectory(at('dangling')))).not.toBe('none')
    expect(reasonOf(() => ensurePrivateDirectory(at('file')))).toBe('not_directory')
    expect(reasonOf(() => ensurePrivateDirectory('state'))).toBe('not_absolute')
  })

  it.skipIf(process.geteuid?.() !== 0)('a directory of another user is rejected (as root)', () => {
    mkdirSync(at('state'), { mode: 0o700 })
    chownSync(at('state'), 12_345, 12_345)
    expect(reasonOf(() => ensurePrivateDirectory(at('state')))).toBe('not_private')
  })
})

describe('absolutePath', () => {
  it.each([
    ['/', '/'],
    ['//', '/'],
    ['/a/..', '/'],
    ['/./', '/'],
    ['/a//b/./c/../d/', '/a/b/d'],
    ['/a b', '/a b'],
    ['a', null],
    ['./a', null],
    ['', null],
    ['~/a', null],
    ['/a\0b', null],
  ])('absolutePath of %j is %j', (path, expected) => {
    expect(absolutePath(path)).toBe(expected)
  })

  it('absolutePath recognizes the root of the file system', () => {
    expect([isRootPath('/'), isRootPath('/a'), isRootPath('')]).toEqual([true, false, false])
  })
})

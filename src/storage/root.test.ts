import { Database } from 'bun:sqlite'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ENVIRONMENT_ID, makeRoot, ROOT_HOLDER } from '../../testing/product-roots.ts'
import { TestSystem } from '../system/system.ts'
import { IdFactory } from '../value/ids.ts'
import { formatKeyring } from '../value/product-root.ts'
import { findHistory } from './control/environment.ts'
import { isRootLocked, lockRoot } from './lock.ts'
import { MIGRATIONS } from './migrations.generated.ts'
import { openProductRoot } from './root.ts'

const system = new TestSystem()
const directories: string[] = []

function newRoot(...parameters: Parameters<typeof makeRoot>): string {
  const directory = makeRoot(...parameters)
  directories.push(directory)
  return directory
}

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

async function rejectionOf(path: string): Promise<{ code: string; detail: string }> {
  const opened = await openProductRoot(path, system).catch((error: unknown) => error)
  expect(opened).toBeInstanceOf(Error)
  return opened as { code: string; detail: string }
}

function keyringFile(fill: number, id = 'k1'): string {
  const key = { id, key: new Uint8Array(32).fill(fill), createdAtMicros: 1n }
  return formatKeyring({ version: 1, keys: [key], active: id })
}

async function holdElsewhere(directory: string) {
  const child = Bun.spawn([process.execPath, ROOT_HOLDER, directory], {
    stdout: 'pipe',
    stderr: 'inherit',
    env: {},
  })
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  expect(new TextDecoder().decode(value)).toBe('opened\n')
  return child
}

describe('a Product root', () => {
  test('a root opens again after it was closed, and belongs to its owner alone', async () => {
    const directory = newRoot()
    for (let i = 0; i < 2; i++) {
      const root = await openProductRoot(directory, system)
      expect(root.descriptor.environmentId).toBe(ENVIRONMENT_ID)
      for (const file of ['lock.db', 'control.db', 'control.db-wal']) {
        expect(statSync(join(directory, file)).mode & 0o777, file).toBe(0o600)
      }
      expect(statSync(join(directory, 'artifacts')).mode & 0o777).toBe(0o700)
      root.close()
      root.close()
    }
  })

  test.each<[string, (directory: string) => string | undefined]>([
    ['is relative', () => 'some/root'],
    ['is the file system root', () => '/'],
    ['does not exist', (directory) => join(directory, 'missing')],
    ['is a file', (directory) => join(directory, 'service.json')],
    [
      'is a link',
      (directory) => {
        const link = join(directory, 'link')
        symlinkSync(newRoot(), link)
        return link
      },
    ],
    ['can be written by others', (directory) => void chmodSync(directory, 0o777)],
    [
      'lacks its descriptor',
      (directory) => unlinkSync(join(directory, 'service.json')) as undefined,
    ],
    ['lacks its keyring', (directory) => unlinkSync(join(directory, 'keyring.json')) as undefined],
    [
      'has a keyring that others can read',
      (directory) => void chmodSync(join(directory, 'keyring.json'), 0o640),
    ],
    [
      'has a descriptor that others can write',
      (directory) => void chmodSync(join(directory, 'service.json'), 0o666),
    ],
    [
      'has a linked keyring',
      (directory) => {
        const path = join(directory, 'keyring.json')
        unlinkSync(path)
        symlinkSync(join(newRoot(), 'keyring.json'), path)
        return undefined
      },
    ],
    ['has a damaged descriptor', (directory) => write(directory, 'service.json', '{}')],
    ['has a keyring that is no JSON', (directory) => write(directory, 'keyring.json', 'key')],
    ['has a huge descriptor', (directory) => write(directory, 'service.json', ' '.repeat(70_000))],
    [
      'has a control.db that is not a database',
      (directory) => write(directory, 'control.db', 'x'.repeat(5000)),
    ],
  ])('a Product root that %s is rejected', async (_, damage) => {
    const directory = newRoot()
    const path = damage(directory) ?? directory
    expect(await rejectionOf(path)).toMatchObject({ code: 'SERVER_PRODUCT_ROOT_INVALID' })
  })

  test.each([
    ['keyring.json', 0o644, 'chmod 600'],
    ['service.json', 0o666, 'chmod go-w'],
  ])('a root with %s of mode %i names the command that fixes it', async (file, mode, command) => {
    const directory = newRoot()
    chmodSync(join(directory, file), mode)
    const detail = expect.stringContaining(`run \`${command} ${join(directory, file)}\``)
    expect(await rejectionOf(directory)).toMatchObject({ detail })
  })

  test.each<[string, (directory: string) => Promise<void> | void, string]>([
    [
      'no file can be created',
      (directory) => chmodSync(directory, 0o500),
      'lock.db cannot .* EACCES',
    ],
    ['nothing can be written', openedThen('.', 0o500), 'lock.db cannot .* SQLITE_READONLY'],
    [
      'control.db cannot be opened',
      openedThen('control.db', 0),
      'control.db cannot .* SQLITE_CANTOPEN',
    ],
    ['the keyring cannot be read', openedThen('keyring.json', 0), 'keyring.json.* EACCES'],
  ])('a root in which %s is unavailable with its cause', async (_, restrict, detail) => {
    const directory = newRoot()
    await restrict(directory)
    // File modes do not restrict the root user.
    const isRoot = process.geteuid!() === 0
    const names = isRoot ? ['.', ...readdirSync(directory)] : []
    for (const name of names) chownSync(join(directory, name), 65_534, 65_534)
    if (isRoot) process.seteuid!(65_534)
    const opening = rejectionOf(directory)
    if (isRoot) process.seteuid!(0)
    expect(await opening).toMatchObject({
      code: 'SERVER_PRODUCT_ROOT_UNAVAILABLE',
      detail: expect.stringMatching(detail),
    })
  })

  test('a Product root is left untouched where one of its two files is invalid', async () => {
    const directory = newRoot()
    write(directory, 'service.json', '{}')
    await rejectionOf(directory)
    expect(() => statSync(join(directory, 'lock.db'))).toThrow('ENOENT')
  })

  test('a root with the descriptor of another Environment is rejected, but usable', async () => {
    const directory = newRoot()
    ;(await openProductRoot(directory, system)).close()
    const ids = new IdFactory(new TestSystem({ seed: 99 }))
    const other = makeRoot({ descriptor: { environmentId: ids.make('env') } })
    directories.push(other)
    const text = await Bun.file(join(directory, 'service.json')).text()
    write(directory, 'service.json', await Bun.file(join(other, 'service.json')).text())
    // Keys are derived with the Environment, so the keyring would not match either.
    expect(await rejectionOf(directory)).toMatchObject({
      code: 'SERVER_PRODUCT_ROOT_INVALID',
      detail: 'service.json and control.db belong to different Environments',
    })
    write(directory, 'service.json', text)
    ;(await openProductRoot(directory, system)).close()
  })

  test('a root with a foreign keyring is rejected, even under the same key ID', async () => {
    const directory = newRoot()
    ;(await openProductRoot(directory, system)).close()
    for (const text of [keyringFile(2), keyringFile(1, 'k2')]) {
      write(directory, 'keyring.json', text)
      expect(await rejectionOf(directory)).toMatchObject({
        code: 'SERVER_PRODUCT_ROOT_INVALID',
        detail: expect.stringContaining('keyring.json lacks the key k1'),
      })
    }
    write(directory, 'keyring.json', keyringFile(1))
    ;(await openProductRoot(directory, system)).close()
  })

  test('a root keeps its history, and begins one where it has none', async () => {
    const directory = newRoot()
    const historyOf = async () => {
      const root = await openProductRoot(directory, system)
      const history = root.control.read(findHistory)
      root.close()
      return history
    }
    const first = await historyOf()
    expect(first).toMatch(/^hst_/)
    expect(await historyOf()).toBe(first)
    // A root of a version before has none.
    const database = new Database(join(directory, 'control.db'))
    database.exec('update environment set history_id = null')
    database.close()
    const second = await historyOf()
    expect(second).toMatch(/^hst_/)
    expect(second).not.toBe(first)
  })

  // An empty control database references no artifact and no index: all would be removed.
  test.each<[string, (control: string) => void]>([
    ['lost', (control) => rmSync(control)],
    ['emptied', (control) => truncateSync(control)],
    // The content of a new database is in its log; the file has one page.
    ['copied without its log', (control) => rmSync(`${control}-wal`)],
  ])(
    'a root whose control database was %s is rejected and unchanged',
    { tags: ['slow'] },
    async (_, damage) => {
      const directory = newRoot()
      const holder = await holdElsewhere(directory)
      holder.kill('SIGKILL')
      await holder.exited
      const control = join(directory, 'control.db')
      const kept = ['', '-wal'].map((end) => [control + end, readFileSync(control + end)] as const)
      expect(kept[0]![1]).toHaveLength(4096)
      damage(control)
      const wal = existsSync(`${control}-wal`)
      for (let i = 0; i < 2; i++) {
        expect(await rejectionOf(directory)).toMatchObject({
          code: 'SERVER_PRODUCT_ROOT_INVALID',
          detail: expect.stringMatching(/^control\.db is missing or empty.*: restore control\.db,/),
        })
      }
      expect(wal ? readFileSync(`${control}-wal`) : null).toEqual(wal ? kept[1]![1] : null)
      for (const [path, bytes] of kept) writeFileSync(path, bytes, { mode: 0o600 })
      ;(await openProductRoot(directory, system)).close()
    },
  )

  test('a root opens with an empty control database that a killed process left', async () => {
    const directory = newRoot()
    write(directory, 'control.db', '')
    // The directory may exist already, as the mount point of a volume.
    mkdirSync(join(directory, 'artifacts'))
    ;(await openProductRoot(directory, system)).close()
  })

  test.each(['documents.db', 'documents.postgres'])(
    'a Product root with only %s left is rejected',
    async (file) => {
      const directory = newRoot()
      write(directory, file, 'x')
      expect(await rejectionOf(directory)).toMatchObject({
        code: 'SERVER_PRODUCT_ROOT_INVALID',
        detail: expect.stringContaining(`but ${file} exists`),
      })
      expect(existsSync(join(directory, 'control.db'))).toBe(false)
    },
  )

  test('a Product root with a schema version unknown to this program is rejected', async () => {
    const directory = newRoot()
    ;(await openProductRoot(directory, system)).close()
    for (const [change, restore] of [
      ["update control_migrations set checksum = 'x' || checksum", 'substr(checksum, 2)'],
      ["insert into control_migrations values (99, 'later', 'x', 1, 1)", null],
    ] as const) {
      const database = new Database(join(directory, 'control.db'))
      database.exec(change)
      expect(await rejectionOf(directory)).toMatchObject({ code: 'SERVER_PRODUCT_ROOT_INVALID' })
      if (restore !== null) database.exec(`update control_migrations set checksum = ${restore}`)
      database.close()
    }
  })
})

describe('a Product root of another version', () => {
  const KNOWN = MIGRATIONS.length
  const record = (readableFrom: number) =>
    `insert into control_migrations values (${KNOWN + 1}, 'later', 'x', 1, ${readableFrom})`
  const change = (directory: string, ...statements: string[]) => {
    const database = new Database(join(directory, 'control.db'))
    for (const statement of statements) database.exec(statement)
    database.close()
  }

  test('a later version that names this one is used and left as it is', async () => {
    const directory = newRoot()
    ;(await openProductRoot(directory, system)).close()
    change(directory, 'alter table buckets add column later text', record(KNOWN))
    ;(await openProductRoot(directory, system)).close()
    change(directory, `update control_migrations set readable_from = version`)
    expect(await rejectionOf(directory)).toMatchObject({
      code: 'SERVER_DATABASE_NEWER',
      detail: `control.db: schema version ${KNOWN + 1} is unknown to this program`,
    })
  })
})

describe('the lock', () => {
  test('the lock rejects a second process, and admits it after a kill -9', {
    tags: ['slow'],
  }, async () => {
    const directory = newRoot()
    const child = await holdElsewhere(directory)
    try {
      const started = performance.now()
      expect(await rejectionOf(directory)).toMatchObject({ code: 'SERVER_PRODUCT_ROOT_LOCKED' })
      expect(performance.now() - started).toBeLessThan(60_000)
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
    ;(await openProductRoot(directory, system)).close()
  })

  test('the lock rejects the same process too, which keeps the lock that it holds', {
    tags: ['slow'],
  }, async () => {
    const directory = newRoot()
    const root = await openProductRoot(directory, system)
    expect(await rejectionOf(directory)).toMatchObject({ code: 'SERVER_PRODUCT_ROOT_LOCKED' })
    // The rejected attempt must not have dropped the first lock.
    const other = Bun.spawnSync([process.execPath, ROOT_HOLDER, directory], { env: {} })
    expect(other.stderr.toString()).toContain('SERVER_PRODUCT_ROOT_LOCKED')
    root.close()
  })

  test('a process that looks whether a root is locked does not keep a server from it', async () => {
    const directory = newRoot()
    ;(await openProductRoot(directory, system)).close()
    const [lock, signal] = [join(directory, 'lock.db'), join(directory, 'signal')]
    // Reads as `isRootLocked` does, and continues while the lock is taken.
    const reader = `const { Database } = require('bun:sqlite')
      const database = new Database(process.argv[1], { readonly: true })
      database.run('begin')
      database.query('select count(*) from sqlite_schema').get()
      process.stdout.write('reads')
      while (!require('node:fs').existsSync(process.argv[2])) Bun.sleepSync(1)
      Bun.sleepSync(50)
      database.run('commit')`
    const child = Bun.spawn([process.execPath, '-e', reader, lock, signal], { stdout: 'pipe' })
    await child.stdout.getReader().read()
    writeFileSync(signal, '')
    lockRoot(lock).release()
    expect(await child.exited).toBe(0)
    expect(isRootLocked(lock)).toBe(false)
    const root = await openProductRoot(directory, system)
    expect(isRootLocked(lock)).toBe(true)
    root.close()
  })

  test('the lock is not inherited by child processes', async () => {
    const directory = newRoot()
    const root = await openProductRoot(directory, system)
    const child = Bun.spawn(['sleep', '30'])
    root.close()
    ;(await openProductRoot(directory, system)).close()
    child.kill('SIGKILL')
    await child.exited
  })
})

/** Returns a step that opens and closes the root, then changes the mode of a file. */
function openedThen(file: string, mode: number): (directory: string) => Promise<void> {
  return async (directory) => {
    ;(await openProductRoot(directory, system)).close()
    chmodSync(join(directory, file), mode)
  }
}

function write(directory: string, file: string, text: string): undefined {
  const mode = file === 'service.json' ? 0o644 : 0o600
  writeFileSync(join(directory, file), text, { mode })
}

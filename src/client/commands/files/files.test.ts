/** `svc buckets` and `svc files` against the real routes, with real files on the disk. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FakeServer, newId } from '../../../../testing/client/fake-server.ts'
import { TestClient } from '../../../../testing/client/test-client.ts'
import { type Console, openConsole } from '../../../../testing/files/consoles.ts'
import { sha256Hex } from '../../../system/digests.ts'
import type { TestSystem } from '../../../system/system.ts'
import { localName } from '../../local-names.ts'
import { formatBytes, parseBytes, progressBar } from '../../sizes.ts'
import type { BucketItem } from './requests.ts'

let console_: Console
let server: FakeServer
let client: TestClient
/** Paths and ranges of the requests that reached the real routes. */
let asked: { method: string; path: string; range: string | null }[] = []
/** Replaces the response to a request; null for the real one. */
let intercept: (path: string, range: string | null) => Promise<Response> | null = () => null

beforeAll(async () => {
  console_ = await openConsole()
  // The client has the clock of the machine.
  const { system } = console_.gateway.harness
  ;(system as TestSystem).advance(Date.now() - system.nowMillis())
  server = await new FakeServer().start()
  client = await new TestClient().linked(server)
  const identity = client.fetch
  client.fetch = async (url, init) => {
    const path = url.slice(server.origin.length + server.base.length)
    if (!/^\/bucket/.test(path)) return identity(url, init)
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${console_.token}`)
    const range = headers.get('range')
    asked.push({ method: init.method!, path, range })
    const answer = intercept(path, range)
    if (answer !== null) return answer
    return fetch(`http://${console_.address}${console_.base}${path}`, { ...init, headers })
  }
})
afterAll(async () => {
  server.stop()
  client[Symbol.dispose]()
  await console_.close()
})
beforeEach(() => {
  asked = []
  intercept = () => null
  client.typed = null
})

const REMOTE = ['--remote', '--root', 'root']
const run = async (...words: string[]) => {
  const ran = await client.run(...words, ...REMOTE)
  return { ...ran, json: () => JSON.parse(ran.out) as Record<string, never> }
}
const succeed = async (...words: string[]) => {
  const ran = await run(...words)
  expect(ran.exit, ran.err).toBe(0)
  return ran
}
const at = (name: string) => join(client.home, name)
let names = 0
const newBucket = async (...bounds: string[]) => {
  const name = `cli-${++names}`
  await succeed('buckets', 'create', name, ...bounds)
  return name
}

describe('svc buckets', () => {
  test('a bucket is created once for its operation, bounded, listed and archived', async () => {
    const operation = ['--operation-id', newId.make('opn')]
    const create = ['buckets', 'create', 'cli-main', '--quota', '2KiB', ...operation]
    expect((await succeed(...create)).out).toContain('Created: cli-main (bkt_')
    expect((await succeed(...create)).out).toContain('Created before: cli-main')
    await succeed('buckets', 'update', 'cli-main', '--object-max', '1000')
    const { out } = await succeed('buckets', 'list')
    expect(out).toMatch(/cli-main +active +0 +0 B +2\.0 KiB +1000 B +2 /)
    const stale = await run('buckets', 'update', 'cli-main', '--quota', 'none', '--expected', '1')
    expect([stale.exit, stale.err]).toEqual([4, expect.stringContaining('svc buckets list')])
    await succeed('buckets', 'archive', 'cli-main')
    expect((await succeed('buckets', 'list')).out).toMatch(/cli-main +archived/)
  })

  test('every page of the storage keys is listed, unless the pages do not end', async () => {
    const bucket = await newBucket()
    const { items } = JSON.parse((await succeed('buckets', 'list', '--json')).out)
    const { bucketId } = items.find((each: BucketItem) => each.configuration.name === bucket)
    const ids = [newId.make('stk'), newId.make('stk')] as const
    const keyOf = (storageKeyId: string) => ({
      storageKeyId,
      bucketId,
      accessKeyId: storageKeyId,
      name: 'ci',
      access: 'read',
      state: 'active',
      replaces: null,
      createdAtMicros: '1',
      revokedAtMicros: null,
    })
    let last: string | null = null
    intercept = (path) => {
      if (!path.includes('/keys')) return null
      const isSecond = path.endsWith(`&after=${ids[0]}`)
      const next = isSecond ? last : ids[0]
      const page = { version: 1, items: [keyOf(ids[isSecond ? 1 : 0])], next }
      return Promise.resolve(Response.json(page))
    }
    const listed = await succeed('buckets', 'keys', 'list', bucket, '--json')
    expect(JSON.parse(listed.out)).toMatchObject({ items: ids.map(keyOf), next: null })
    last = ids[0]
    const endless = await run('buckets', 'keys', 'list', bucket)
    expect([endless.exit, endless.err]).toEqual([1, expect.stringContaining('do not end')])
  })

  test('a secret is shown once, or goes to a new private file', async () => {
    const bucket = await newBucket()
    const operation = ['--operation-id', newId.make('opn')]
    const issue = ['buckets', 'keys', 'issue', bucket, '--name', 'ci', '--access', 'write']
    const { out } = await succeed(...issue, ...operation)
    const [, id, secret] = /(stk_\S+)\nSecret access key: +(rk_stk_v1_\S+)\n/.exec(out)!
    expect(console_.gateway.files.storageKeys.find(id!)!.secretAccessKey.reveal()).toBe(secret)
    const again = await succeed(...issue, ...operation)
    expect(again.out).toContain('was issued earlier')
    expect(again.out).not.toContain(secret)
    const rotate = ['buckets', 'keys', 'rotate', bucket, '--key', id!, '--secret-out', 'secret']
    const rotated = await succeed(...rotate)
    expect(rotated.out).not.toContain('rk_stk')
    expect(readFileSync(at('secret'), 'utf8')).toMatch(/^rk_stk_v1_[A-Za-z0-9_-]{43}\n$/)
    expect(statSync(at('secret')).mode & 0o777).toBe(0o600)
    expect((await run(...rotate)).exit).toBe(1)
    await succeed('buckets', 'keys', 'revoke', bucket, '--key', id!)
    const listed = await succeed('buckets', 'keys', 'list', bucket)
    expect(listed.out).toMatch(new RegExp(`${id} +ci +write +revoked`))
    expect(listed.out).not.toContain(secret)
  })

  test.each([
    [['buckets'], 'buckets needs one of: list, create, update, archive, keys.'],
    [['buckets', 'keys'], 'buckets keys needs one of: list, issue, rotate, revoke.'],
    [['buckets', 'keys', 'isue'], 'Did you mean buckets keys issue?'],
    [['buckets', 'crate'], 'Did you mean buckets create?'],
    [['buckets', 'create', 'x', '--quota', '1.5GiB'], '--quota needs a size'],
    [['buckets', 'update', 'x'], 'Give --quota or --object-max'],
    [
      ['buckets', 'keys', 'issue', 'x', '--name', 'a', '--access', 'all'],
      '--access must be one of read',
    ],
    [['buckets', 'keys', 'revoke', 'x', '--key', 'crd_1'], '--key needs an stk_'],
    [['files', 'list', '--limit', '1001'], '--limit is 1 to 1000'],
    [['files', 'get', '..'], 'have no URL'],
    [['files', 'get', 'a/'], 'give one with --out'],
    [['files', 'put', 'x', '--type', 'png'], '--type is a media type'],
  ])('%j is a mistake that is explained', async (words, message) => {
    const { exit, err } = await run(...words)
    expect([exit, err]).toEqual([2, expect.stringContaining(message)])
    expect(asked).toEqual([])
  })

  test('an unknown bucket and an unknown object are not found', async () => {
    const bucket = await run('files', 'list', '--bucket', 'no-such-bucket')
    expect([bucket.exit, bucket.err]).toEqual([7, expect.stringContaining('svc buckets list')])
    const object = await run('files', 'get', 'no-such-object')
    expect([object.exit, object.err]).toEqual([7, expect.stringContaining('svc files list')])
  })
})

describe('svc files', () => {
  test('a file is stored, listed, downloaded and deleted', async () => {
    const bucket = ['--bucket', await newBucket()]
    writeFileSync(at('logo.png'), 'an image')
    const put = ['files', 'put', 'logo.png', '--key', 'img/a b.png', '--type', 'image/png']
    expect((await succeed(...put, ...bucket)).out).toBe('Stored img/a b.png (8 B).\n')
    const listed = await succeed('files', 'list', 'img/', ...bucket)
    expect(listed.out).toMatch(/img\/a b\.png +8 B +image\/png/)
    await succeed('files', 'get', 'img/a b.png', ...bucket)
    expect(readFileSync(at('a b.png'), 'utf8')).toBe('an image')
    const again = await run('files', 'get', 'img/a b.png', ...bucket)
    expect([again.exit, again.err]).toEqual([1, expect.stringContaining('exists already')])
    expect(readdirSync(client.home).filter((name) => name.endsWith('.part'))).toEqual([])
    await succeed('files', 'delete', 'img/a b.png', ...bucket)
    expect((await run('files', 'get', 'img/a b.png', '--out', 'x', ...bucket)).exit).toBe(7)
  })

  test('a key that begins with another one is found', async () => {
    const bucket = ['--bucket', await newBucket()]
    writeFileSync(at('f'), 'short')
    for (const key of ['a', 'a/b', 'a.b', 'ab'])
      await succeed('files', 'put', 'f', '--key', key, ...bucket)
    for (const key of ['a', 'a/b', 'ab']) {
      const { out } = await succeed(
        'files',
        'get',
        key,
        '--out',
        `of-${key.length}`,
        '--json',
        ...bucket,
      )
      expect(JSON.parse(out)).toMatchObject({ object: { key } })
    }
    expect((await run('files', 'get', 'a/', '--out', 'none', ...bucket)).exit).toBe(7)
  })

  const LONG = 9 * 1024 ** 2
  async function storeLong(): Promise<string[]> {
    const bucket = ['--bucket', await newBucket()]
    const bytes = crypto.getRandomValues(new Uint8Array(64 * 1024))
    writeFileSync(at('long-source'), Buffer.alloc(LONG, bytes))
    await succeed('files', 'put', 'long-source', '--key', 'long', ...bucket)
    return bucket
  }

  test('an interrupted download goes on by range, and a terminal shows a bar', {
    tags: ['slow'],
  }, async () => {
    const bucket = await storeLong()
    const second = 'bytes=8388608-9437183'
    intercept = (_, range) => (range === second ? Promise.reject(new Error('cut')) : null)
    const failed = await run('files', 'get', 'long', ...bucket)
    expect(failed.exit).toBe(5)
    expect(existsSync(at('long'))).toBe(false)
    const part = readdirSync(client.home).find((name) => /^long\..*\.part$/.test(name))!
    expect(statSync(at(part)).size).toBe(8 * 1024 ** 2)
    asked = []
    client.typed = []
    const slow = Promise.withResolvers<void>()
    client.onError = (text) => {
      if (text.includes(' 88% ')) slow.resolve()
    }
    intercept = (path, range) => {
      if (range !== second) return null
      intercept = () => null
      const headers = { authorization: `Bearer ${console_.token}`, range: second }
      const url = `http://${console_.address}${console_.base}${path}`
      return slow.promise.then(() => fetch(url, { headers }))
    }
    const { err } = await succeed('files', 'get', 'long', ...bucket)
    client.onError = () => {}
    expect(err).toContain('[#####################...]  88%  8.0 MiB of 9.0 MiB')
    expect(asked.flatMap(({ range }) => range ?? [])).toEqual([second])
    const [source, target] = ['long-source', 'long'].map((name) =>
      sha256Hex(readFileSync(at(name))),
    )
    expect(target).toBe(source)
    expect(existsSync(at(part))).toBe(false)
  })

  test('a damaged part is found by its digest, and the next download is whole', async () => {
    const bucket = ['--bucket', await newBucket()]
    writeFileSync(at('source'), 'some content')
    await succeed('files', 'put', 'source', '--key', 'damaged', ...bucket)
    const part = at(`damaged.${sha256Hex('some content').slice(0, 16)}.part`)
    writeFileSync(part, 'some cXn')
    const failed = await run('files', 'get', 'damaged', ...bucket)
    expect([failed.exit, failed.err]).toEqual([1, expect.stringContaining('digest')])
    expect(existsSync(part)).toBe(false)
    await succeed('files', 'get', 'damaged', ...bucket)
    expect(readFileSync(at('damaged'), 'utf8')).toBe('some content')
  })

  test('an object that is replaced during the download is no mixture', async () => {
    const bucket = await storeLong()
    writeFileSync(at('other'), 'other')
    let isReplaced = false
    intercept = (_, range) => {
      if (range !== 'bytes=8388608-9437183' || isReplaced) return null
      isReplaced = true
      return run('files', 'put', 'other', '--key', 'long', ...bucket).then(
        () => new Response('other', { status: 200 }),
      )
    }
    const failed = await run('files', 'get', 'long', '--out', 'mixture', ...bucket)
    expect(failed.err).toContain('was replaced during the download')
    expect(existsSync(at('mixture'))).toBe(false)
  })

  test('links and directories in the way of a download are left alone', async () => {
    const bucket = ['--bucket', await newBucket()]
    writeFileSync(at('victim'), 'precious')
    writeFileSync(at('source'), 'evil')
    await succeed('files', 'put', 'source', '--key', 'linked', ...bucket)
    const part = `linked.${sha256Hex('evil').slice(0, 16)}.part`
    symlinkSync(at('victim'), at(part))
    expect((await run('files', 'get', 'linked', ...bucket)).exit).toBe(1)
    symlinkSync(at('victim'), at('target'))
    expect((await run('files', 'get', 'linked', '--out', 'target', ...bucket)).exit).toBe(1)
    mkdirSync(at('directory'))
    expect((await run('files', 'get', 'linked', '--out', 'directory', ...bucket)).exit).toBe(1)
    expect(readFileSync(at('victim'), 'utf8')).toBe('precious')
  })

  test('a file over 64 MiB is rejected with another way', async () => {
    writeFileSync(at('huge'), '')
    truncateSync(at('huge'), 64 * 1024 ** 2 + 1)
    const { exit, err } = await run('files', 'put', 'huge')
    expect([exit, err]).toEqual([8, expect.stringContaining('svc buckets keys issue')])
    expect(asked.filter(({ method }) => method === 'PUT')).toEqual([])
  })
})

test.each<[string, string | null]>([
  ['report.pdf', 'report.pdf'],
  ['a/b/c.txt', 'c.txt'],
  ['a/b c(1).txt', 'b c(1).txt'],
  ['é/ü.txt', 'ü.txt'],
  ['a..b', 'a..b'],
  ['', null],
  ['a/', null],
  ['.', null],
  ['..', null],
  ['a/..', null],
  ['a/.bashrc', null],
  ['a/-rf', null],
  ['..\\..\\x', null],
  ['a/c:x', null],
  ['a/x\u0000', null],
  ['a/x\r\ny', null],
  ['a/\u001b[2J', null],
  ['a/\u202etxt.exe', null],
  ['a/x\u200b', null],
  ['a/con', null],
  ['a/NUL.txt', null],
  ['a/x.', null],
  ['a/x ', null],
  [`a/${'é'.repeat(128)}`, null],
])('the key %j becomes the local name %j', (key, name) => {
  expect(localName(key)).toBe(name)
})

test('sizes are read and written as powers of 1024', () => {
  expect(['0', '7', '1KiB', '2GiB', '8191TiB'].map(parseBytes)).toEqual([
    0,
    7,
    1_024,
    2 * 1024 ** 3,
    8_191 * 1024 ** 4,
  ])
  for (const wrong of ['', '-1', '1.5GiB', '1KB', '01', '8192TiB', '1e3', ' 1']) {
    expect(parseBytes(wrong), wrong).toBeNull()
  }
  expect([0, 1_023, 1_024, 1_536 * 1024].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 MiB',
  ])
  expect(progressBar(0, 0)).toContain('100%')
})

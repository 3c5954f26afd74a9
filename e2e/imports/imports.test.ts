/**
 * Exports of other backends come into a served Environment with the commands that `README.md` of
 * the conversion has, and the server has the same documents afterwards.
 *
 * @module-tag slow
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { convexExport, convexId, STORAGE_NUMBER } from '../../testing/imports/convex-exports.ts'
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, PACKED_CLIENT, run } from '../harness.ts'

const FIXTURES = join(import.meta.dirname, '../../testing/imports/fixtures')
const COUNT = 2_000

let home: string
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-imports-'))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

const USERS = 10_001
const MESSAGES = 10_002
const user = (i: number) => convexId(USERS, i)
const picture = convexId(STORAGE_NUMBER, 1)

/** The documents of a chat, with every type that Convex has. */
function chat(): Uint8Array {
  return convexExport(
    [
      {
        name: 'users',
        number: USERS,
        shape: '{"_creationTime": normalfloat64, "_id": id<10001>, "karma": int64, "name": string}',
        documents: Array.from({ length: 50 }, (_, i) => [
          user(i),
          { _creationTime: 1737061700000 + i / 8, karma: 2n ** 60n + BigInt(i), name: `user ${i}` },
        ]),
      },
      {
        name: 'chat_messages',
        number: MESSAGES,
        shape:
          '{"_creationTime": normalfloat64, "_id": id<10002>, "author": id<10001>, ' +
          '"body": string, "key": bytes | null, "likes": array<id<10001>>, "meta": unknown, ' +
          '"picture"?: id<10900>, "score": normalfloat64 | inf}',
        hasContexts: true,
        documents: Array.from({ length: COUNT }, (_, i) => [
          convexId(MESSAGES, i),
          {
            _creationTime: i,
            author: user(i % 50),
            body: `message ${i} \u{1f600} "quoted"`,
            key: i % 3 === 0 ? null : Uint8Array.of(i & 255, 255),
            likes: [user(1), user(2)],
            meta: i % 2 === 0 ? { type: 'int64', value: '5', deep: [BigInt(i), i / 3] } : 'plain',
            ...(i === 7 && { picture }),
            score: i === 9 ? Number.POSITIVE_INFINITY : i / 7,
          },
        ]),
      },
    ],
    [{ id: picture, contentType: 'text/plain', content: 'the picture' }],
  )
}

/** Converts an export with the executable, and serves its schema. */
async function imported(
  format: string,
  exported: string,
  out: string,
  options: readonly string[] = [],
): Promise<Application> {
  const converting = await run(
    argv`${CLIENT} import ${format} ${exported} --out ${out} ${options} --json`,
  )
  expect(converting.status, converting.stderr).toBe(0)
  return application((workspace) => {
    rmSync(join(workspace, 'functions'), { recursive: true, force: true })
    cpSync(join(out, 'schema.ts'), join(workspace, 'schema.ts'))
  })
}

const linesIn = (path: string): Json[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Runs the rest of the commands, and compares what the server has with what was written. */
async function importAll(app: Application, out: string): Promise<Json> {
  const at = argv`--remote --root ${app.installation.productRoot}`
  const target = argv`--target channel:production`
  const report = JSON.parse(readFileSync(join(out, 'report.json'), 'utf8'))
  const stored = await app.svc(argv`import files ${out} ${at}`)
  expect(stored).toMatchObject({ files: report.files.count, sent: report.files.count })
  for (const { table, documents } of report.collections) {
    const file = join(out, `data/${table}.jsonl`)
    const result = await app.svc(argv`data import ${table} ${file} ${at} ${target}`)
    expect(result, table).toMatchObject({ inserted: documents, unchanged: 0 })
  }
  const verified = await app.svc(argv`import verify ${out} ${at} ${target}`)
  expect(verified).toMatchObject({ equal: true })
  for (const { table } of report.collections) {
    const file = join(home, `${table}-exported.jsonl`)
    await app.svc(argv`data export ${table} ${file} ${at} ${target}`)
    const exported = linesIn(file).map(({ _createdAt, ...document }) => document)
    expect(exported, table).toEqual(linesIn(join(out, `data/${table}.jsonl`)))
    rmSync(file)
  }
  expect(await app.svc(argv`import files ${out} ${at}`)).toMatchObject({ sent: 0 })
  return report
}

describe('a snapshot of Convex', () => {
  let app: Application
  let out: string
  beforeAll(async () => {
    out = join(home, 'from-convex')
    writeFileSync(join(home, 'snapshot.zip'), chat())
    app = await imported('convex', join(home, 'snapshot.zip'), out)
  })
  afterAll(() => app?.installation.dispose())

  test('a snapshot of Convex is in the server with equal digests', async () => {
    const report = await importAll(app, out)
    expect(report.collections.map(({ documents }: Json) => documents)).toEqual([COUNT, 50])
    const at = argv`--remote --root ${app.installation.productRoot}`
    const [{ _id: removed }] = linesIn(join(out, 'data/users.jsonl'))
    const target = argv`--target channel:production`
    await app.svc(argv`data delete users ${removed} ${at} ${target}`)
    const verify = argv`import verify ${out} ${at} ${target} --json`
    const changed = await app.installation.svc(verify)
    expect(changed.status).toBe(1)
    expect(JSON.parse(changed.stdout)).toMatchObject({
      equal: false,
      tables: [
        { table: 'chatMessages', equal: true },
        { table: 'users', equal: false, documents: 49, expected: 50 },
      ],
    })
  })

  test('a snapshot of Convex has its file behind the ID that the message refers to', async () => {
    const at = argv`--remote --root ${app.installation.productRoot}`
    const message = linesIn(join(out, 'data/chatMessages.jsonl'))[7]
    const { items } = await app.svc(argv`files list convex/ ${at}`)
    expect(items).toMatchObject([
      {
        key: `convex/${picture}.txt`,
        fileId: message.picture,
        contentType: 'text/plain',
        sha256: createHash('sha256').update('the picture').digest('hex'),
      },
    ])
  })

  test('a snapshot of Convex is converted to the same bytes by the client for Node', async () => {
    const other = join(home, 'by-node')
    const command = argv`import convex ${join(home, 'snapshot.zip')} --out ${other}`
    const converted = await run(['node', PACKED_CLIENT, ...command], {
      environment: { PATH: NODE_PATH },
    })
    expect(converted.status, converted.stderr).toBe(0)
    for (const name of ['schema.ts', 'report.json', 'README.md']) {
      const text = (directory: string) => readFileSync(join(directory, name), 'utf8')
      expect(text(other), name).toBe(text(out))
    }
    expect(linesIn(join(other, 'data/users.jsonl'))).toEqual(linesIn(join(out, 'data/users.jsonl')))
  })
})

test('a backup of PocketBase is in the server with equal counts and digests', async () => {
  const out = join(home, 'from-pocketbase')
  const app = await imported('pocketbase', join(FIXTURES, 'pocketbase-0.36.zip'), out)
  try {
    const report = await importAll(app, out)
    expect(report.files.count).toBe(4)
  } finally {
    await app.installation.dispose()
  }
})

test('classes of Parse are in the server with equal counts and digests', async () => {
  const out = join(home, 'from-parse')
  const app = await imported('parse', join(FIXTURES, 'parse-8.6.zip'), out)
  try {
    const report = await importAll(app, out)
    expect(report.files.count).toBe(1)
  } finally {
    await app.installation.dispose()
  }
})

test('exports of Firebase are in the server with equal counts and digests', async () => {
  const out = join(home, 'from-firebase')
  const app = await imported('firebase', join(FIXTURES, 'firebase-emulator.zip'), out)
  try {
    const report = await importAll(app, out)
    expect(report.files.count).toBe(1)
    const counts = report.collections.map(({ table, documents }: Json) => [table, documents])
    expect(Object.fromEntries(counts)).toMatchObject({ rooms: 2, roomsMessages: 3, authUsers: 2 })
  } finally {
    await app.installation.dispose()
  }
})

test('JSON of Firestore and a Realtime Database are in the server with equal digests', async () => {
  const exported = join(home, 'firebase-json')
  mkdirSync(exported)
  const joined = { __datatype__: 'timestamp', value: { _seconds: 1_769_862_600, _nanoseconds: 0 } }
  const owner = { __datatype__: 'documentReference', value: 'users/ada' }
  const files = {
    'firestore.json': {
      __collections__: {
        users: { ada: { joined, key: { __datatype__: 'bytes', value: 'AAH/' } } },
        rooms: { r1: { owner, __collections__: { messages: { m1: { text: 'hi', n: 0.5 } } } } },
      },
    },
    'app-default-rtdb-export.json': {
      chats: Object.fromEntries(
        Array.from({ length: 20 }, (_, room) => [
          `-Nroom${room}`,
          Object.fromEntries(
            Array.from({ length: COUNT / 20 }, (_, i) => [`-N${i}`, { text: `ü ${i}`, at: i / 3 }]),
          ),
        ]),
      ),
      settings: { theme: 'dark', shops: [null, { name: 'first' }] },
    },
  }
  for (const [name, json] of Object.entries(files)) {
    writeFileSync(join(exported, name), JSON.stringify(json, null, 2))
  }
  mkdirSync(join(exported, 'storage'))
  writeFileSync(join(exported, 'storage/a.txt'), 'the file')
  const out = join(home, 'from-firebase-json')
  const app = await imported('firebase', exported, out, argv`--table chats/*`)
  try {
    const report = await importAll(app, out)
    const counts = report.collections.map(({ table, documents }: Json) => [table, documents])
    expect(Object.fromEntries(counts)).toEqual({
      rooms: 1,
      roomsMessages: 1,
      users: 1,
      chats: COUNT,
      settings: 2,
    })
  } finally {
    await app.installation.dispose()
  }
})

test('a directory that is not empty stays, and a failed conversion leaves nothing', async () => {
  const kept = join(home, 'kept')
  cpSync(FIXTURES, kept, { recursive: true })
  const onto = argv`${CLIENT} import convex ${join(home, 'snapshot.zip')} --out ${kept}`
  const refused = await run(onto)
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('is not empty')])
  const archive = join(home, 'broken.zip')
  writeFileSync(archive, chat().subarray(0, 5_000))
  const broken = argv`${CLIENT} import convex ${archive} --out ${join(home, 'none')}`
  const failed = await run(broken)
  expect([failed.status, failed.stderr]).toEqual([8, expect.stringContaining('no ZIP archive')])
  const left = await run(['ls', '-A', home], { environment: { PATH: NODE_PATH } })
  expect(left.stdout).not.toMatch(/none|partial/)
})

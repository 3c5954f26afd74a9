/**
 * `svc dev --from`: a developer works on a redacted copy of what a server has.
 *
 * @module-tag slow
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, action, application, id, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'
import { DevelopmentProcess } from '../development/development-process.ts'
import { CLIENTS, run } from '../harness.ts'

const GUIDE = join(import.meta.dirname, '../../src/docs/dev.md')
const PHOTO = 'bytes of a photograph'
const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  people: table({ email: v.string(), name: v.string(), photo: v.id('files') })
    .unique('byEmail', ['email']),
  secrets: table({ text: v.string() }),
})
`
const FUNCTIONS = `import { action, mutation, query, v } from 'svc'
const clients = ['confidential', 'public'] as const
export const store = action({
  clients, uses: { storage: 'write' }, returns: v.id('files'),
  handler: (ctx) =>
    ctx.storage.put(new TextEncoder().encode('${PHOTO}'), { contentType: 'text/plain' }),
})
export const join = mutation({
  clients, arguments: { email: v.string(), name: v.string(), photo: v.id('files') },
  returns: v.null(),
  handler: async (ctx, person) => {
    await ctx.db.insert('people', person)
    await ctx.db.insert('secrets', { text: 'of ' + person.name })
    return null
  },
})
export const list = query({
  clients, returns: v.array(v.array(v.string())),
  handler: async (ctx) =>
    (await ctx.db.table('people').scan().collect()).map(({ email, name }) => [email, name]),
})
export const photo = query({
  clients, returns: v.downloadUrl(),
  handler: async (ctx) => {
    const [first] = await ctx.db.table('people').scan().collect()
    return ctx.storage.createDownloadUrl(first!.photo)
  },
})
`
const ORIGINALS = ['ana.original@example.com', 'bob.original@example.com', 'Shared Original']

let directory: string
let app: Application
let workspace: string
let archive: string
let key: string
const started: DevelopmentProcess[] = []

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-copy-'))
  key = join(directory, 'backup.key')
  archive = join(directory, 'backup.tar')
  workspace = join(directory, 'workspace')
  const { command } = CLIENTS[0]!
  const made = await run(argv`${command} backup keygen --out ${key}`, {
    environment: { SERVICE_CONFIG_HOME: directory },
  })
  expect(made.status, made.stderr).toBe(0)
  app = await application(writeFunctions, { SERVICE_BACKUP_RECIPIENTS: made.stdout.trim() })
  const { body } = await action(app, { function: 'people.store' })
  for (const email of ORIGINALS.slice(0, 2)) {
    const joined = {
      email: string(email),
      name: string(ORIGINALS[2]!),
      photo: id(body.result.value),
    }
    expect((await mutation(app, { function: 'people.join', arguments: joined })).status).toBe(200)
  }
  const remote = argv`--remote --root ${app.installation.productRoot}`
  const { backupId } = await app.svc(argv`backup create ${remote}`)
  await app.svc(argv`backup download ${backupId} --out ${archive} ${remote}`)
  cpSync(app.installation.workspace, workspace, { recursive: true })
  // The Workspace of the developer has no table of secrets.
  write('schema.ts', SCHEMA.replace(/ *secrets: .*\n/, ''))
  write('functions/people.ts', FUNCTIONS.replace(/ *await .*'secrets'.*\n/, ''))
})
afterAll(async () => {
  for (const dev of started) await dev.stop()
  await app?.installation.dispose()
  rmSync(directory, { recursive: true })
})

function writeFunctions(to: string): void {
  for (const name of readdirSync(join(to, 'functions'))) rmSync(join(to, 'functions', name))
  writeFileSync(join(to, 'schema.ts'), SCHEMA)
  writeFileSync(join(to, 'functions/people.ts'), FUNCTIONS)
}

function write(path: string, content: string): void {
  writeFileSync(join(workspace, path), content)
}

function redaction(people: object): string {
  const path = join(directory, 'redact.json')
  writeFileSync(path, JSON.stringify({ tables: { people } }))
  return path
}

function start(root: string, options: readonly string[]): DevelopmentProcess {
  const where = argv`--root ${join(directory, root)} --workspace ${workspace} --port 0`
  const dev = new DevelopmentProcess(argv`${where} ${options}`)
  started.push(dev)
  return dev
}

const fromArchive = () => argv`--from ${archive} --identity ${key}`

/** Returns the texts of the list of people. */
async function people(dev: DevelopmentProcess): Promise<string[][]> {
  const listed = (await dev.call('people.list', 'query')) as { value: { value: string }[] }[]
  return listed.map(({ value }) => value.map((each) => each.value))
}

async function photo(dev: DevelopmentProcess): Promise<Response> {
  const { url } = await dev.next('ready', 0)
  const shown = (await dev.call('people.photo', 'query')) as { key: string; value: never }[]
  const path = shown.find((entry) => entry.key === 'path')!.value as { value: string }
  return fetch(url + path.value)
}

test('a developer sees redacted documents and the files of a backup', async () => {
  const redact = redaction({ email: 'fake', name: 'hash' })
  const dev = start('copy', argv`${fromArchive()} --redact ${redact}`)
  const copied = await dev.next('copied', 0)
  expect(copied).toMatchObject({
    from: archive,
    files: 1,
    isRedacted: true,
    tables: [
      { table: 'people', documents: 2, leftOut: 0 },
      { table: 'secrets', documents: 0, leftOut: 2, rule: null },
    ],
  })
  await dev.next('ready', 0)
  const listed = await people(dev)
  expect(listed).toEqual([
    [expect.stringMatching(/^[a-z]+@[a-z]+\.test$/), expect.stringMatching(/^[0-9a-f]{32}$/)],
    [expect.stringMatching(/^[a-z]+@[a-z]+\.test$/), listed[0]![1]],
  ])
  const answered = await photo(dev)
  expect([answered.status, await answered.text()]).toEqual([200, PHOTO])
  await dev.stop()
  for (const entry of readdirSync(join(directory, 'copy'), {
    recursive: true,
    withFileTypes: true,
  })) {
    if (!entry.isFile()) continue
    const content = readFileSync(join(entry.parentPath, entry.name))
    const found = ORIGINALS.filter((text) => content.includes(text))
    expect(found, entry.name).toEqual([])
  }
  const again = start('copy', argv`${fromArchive()} --redact ${redact}`)
  await again.next('notice', 0, 'a copy of this backup already')
  await again.next('ready', 0)
  expect(await people(again)).toEqual(listed)
  await again.stop()
  const other = start('copy', fromArchive())
  const { status, output } = await other.ended
  expect([status, output]).toEqual([4, expect.stringContaining('COPY_ROOT_NOT_EMPTY')])
})

test('a file that is read after a restart without --from is read from the backup', async () => {
  const dev = start('later', fromArchive())
  expect(await dev.next('copied', 0)).toMatchObject({ isRedacted: false })
  await dev.next('ready', 0)
  await dev.stop()
  const hidden = `${key}.hidden`
  cpSync(key, hidden)
  rmSync(key)
  const again = start('later', [])
  await again.next('ready', 0)
  expect((await people(again)).map(([email]) => email)).toEqual(ORIGINALS.slice(0, 2))
  expect((await photo(again)).status).toBe(503)
  await again.next('notice', 0, 'could not be read from the backup')
  cpSync(hidden, key)
  expect(await (await photo(again)).text()).toBe(PHOTO)
  await again.stop()
})

test('a redaction that names an unknown field copies nothing and says the closest', async () => {
  const dev = start('typo', argv`${fromArchive()} --redact ${redaction({ emial: 'fake' })}`)
  const { status, output } = await dev.ended
  expect([status, output]).toEqual([8, expect.stringContaining('Did you mean email?')])
  expect(readdirSync(join(directory, 'typo'))).not.toContain('documents.db')
})

test('the guide has the command of these tests', () => {
  expect(readFileSync(GUIDE, 'utf8')).toContain(
    'svc dev --root my-app --from backup.tar --identity backup.key --redact redact.json',
  )
})

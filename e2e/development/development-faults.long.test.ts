/** Faults of the machine that `svc dev` meets: each is explained and ends without a restart. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { realSystem } from '../../src/system/system.ts'
import { argv } from '../argv.ts'
import { Disk } from '../faults/disk.ts'
import { CLIENT, runSync } from '../harness.ts'
import { DevelopmentProcess } from './development-process.ts'

const { ids } = realSystem()
const trial = mkdtempSync(join(tmpdir(), 'svc-development-trial-'))
const noDisk = Disk.reason(trial)
rmSync(trial, { recursive: true })
const PATH = process.env.PATH ?? ''
/** The number of watchers that the processes of one user namespace may have. */
const LIMIT = '/proc/sys/user/max_inotify_instances'
const IN_NAMESPACE = ['unshare', '--user', '--map-root-user', 'sh', '-c']
const noLimits = reasonOfLimits()

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({ notes: table({ text: v.string() }) })
`
const source = (version: number, more = ''): string => `import { mutation, query, v } from 'svc'
const clients = ['public'] as const
export const version = query({ clients, returns: v.string(), handler: () => '${version}' })
export const count = query({
  clients, returns: v.string(),
  handler: async ({ db }) => String((await db.table('notes').scan().collect()).length),
})
export const add = mutation({
  clients, returns: v.null(),
  handler: async ({ db }) => {
    await db.insert('notes', { text: 'x'.repeat(20_000) })
    return null
  },
})
${more}`

let directory = ''
let root = ''
let workspace = ''
let dev: DevelopmentProcess | null = null
let disk: Disk | null = null
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-development-'))
  root = join(directory, 'root')
  mkdirSync(root, { mode: 0o700 })
})
afterEach(async () => {
  await dev?.stop()
  disk?.unmount()
  dev = null
  disk = null
  rmSync(directory, { recursive: true, force: true })
})

/** Writes a file as editors do that replace it by renaming a new one. */
function save(file: string, text: string): void {
  const path = join(workspace, file)
  writeFileSync(`${path}~`, text)
  renameSync(`${path}~`, path)
}

function writeWorkspace(path: string): void {
  workspace = path
  mkdirSync(join(workspace, 'functions'), { recursive: true })
  save('schema.ts', SCHEMA)
  save('functions/notes.ts', source(1))
}

function start(options: readonly string[]): DevelopmentProcess {
  dev = new DevelopmentProcess(argv`--root ${root} --workspace ${workspace} ${options}`)
  return dev
}

const version = () => dev!.call('notes.version', 'query')
const add = () => dev!.call('notes.add', 'mutation', ids.make('opn'))

/** Returns the files of a directory of the root, in no order. */
const filesOf = (path: string): string[] =>
  readdirSync(join(root, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

describe.skipIf(noDisk !== null)(`a full disk (${noDisk ?? 'mounted for this test'})`, () => {
  test('a full disk rejects saves and Mutations, and free space publishes the save', async () => {
    writeWorkspace(join(directory, 'app'))
    disk = Disk.mountAt(root)
    start(argv`--port 0`)
    await dev!.next('ready', 0)
    expect(await add()).toBe(null)
    const artifacts = filesOf('artifacts')

    disk.fill()
    const from = dev!.events.length
    save('functions/notes.ts', source(2))
    const { code, message, details, next } = await dev!.next('rejected', from)
    expect({ code, message }).toEqual({
      code: 'PRODUCT_UNAVAILABLE',
      message: 'The save is not served: the disk of the root is full.',
    })
    expect(details).toEqual([expect.stringMatching(/ENOSPC|SQLITE_FULL/)])
    expect(next).toEqual([
      'Free space on this disk; documents and code that are stored stay as they are.',
      'The save is tried again every second.',
    ])
    expect([await version(), await add()]).toEqual(['1', 'UNAVAILABLE'])
    expect(filesOf('artifacts')).toEqual(artifacts)

    disk.empty()
    await dev!.next('served', from)
    expect(await version()).toBe('2')
    expect(await add()).toBe(null)
    // A save that is tried again is explained once.
    expect(dev!.events.filter(({ event }) => event === 'rejected')).toHaveLength(1)
    const later = dev!.events.length
    save('functions/notes.ts', source(3))
    await dev!.next('served', later)
    expect([await version(), await dev!.call('notes.count', 'query')]).toEqual(['3', '2'])
  })

  test('a save whose generated files have no space is rejected, and published later', async () => {
    writeWorkspace(join(root, 'workspace'))
    runSync(argv`${CLIENT} dev --root ${root} --workspace ${workspace} --prepare`)
    disk = Disk.mountAt(root)
    start(argv`--port 0`)
    await dev!.next('ready', 0)
    const path = join(workspace, 'functions/notes.ts')
    const more = 'export const more = query({ clients, returns: v.null(), handler: () => null })'
    writeFileSync(`${path}~`, source(2, more))
    disk.fill()
    const from = dev!.events.length
    renameSync(`${path}~`, path)
    const { code, details, next } = await dev!.next('rejected', from)
    expect(code).toBe('CLIENT_FILE_FAILED')
    expect(details).toEqual([expect.stringMatching(/_generated\/\S+ is not .* with free space/)])
    expect(next).toEqual([expect.stringContaining('free space'), expect.stringContaining('again')])
    expect(await version()).toBe('1')
    expect(await dev!.call('notes.more', 'query')).toBe('FUNCTION_NOT_FOUND')
    disk.empty()
    await dev!.next('served', from)
    expect(await version()).toBe('2')
    expect(readdirSync(join(workspace, '_generated')).filter((name) => /tmp/.test(name))).toEqual(
      [],
    )
  })

  test('a start on a full disk names the cause, and the next one has all documents', async () => {
    writeWorkspace(join(directory, 'app'))
    disk = Disk.mountAt(root)
    start(argv`--port 0`)
    expect(await add()).toBe(null)
    await dev!.stop()
    disk.fill()
    const { status, output } = await start(argv`--port 0`).ended
    expect(output).toMatch(/SERVER_PRODUCT_ROOT_UNAVAILABLE[\s\S]*Free space on its disk/)
    expect(status).toBe(1)
    expect(existsSync(join(root, 'dev.json'))).toBe(false)
    disk.empty()
    start(argv`--port 0`)
    expect([await version(), await dev!.call('notes.count', 'query')]).toEqual(['1', '1'])
  })

  test('a first start on a full disk leaves no root, and the next start creates it', async () => {
    writeWorkspace(join(directory, 'app'))
    disk = Disk.mountAt(root)
    disk.fill()
    const before = filesOf('.')
    const { status, output } = await start(argv`--port 0`).ended
    expect(output).toMatch(/CLIENT_FILE_FAILED[\s\S]*free space/)
    expect(status).toBe(1)
    expect(filesOf('.')).toEqual(before)
    disk.empty()
    start(argv`--port 0`)
    expect(await version()).toBe('1')
  })
})

describe.skipIf(noLimits !== null)(`exhausted file watches (${noLimits ?? 'limited here'})`, () => {
  test('exhausted watches are reported, saves are still seen, and watches come back', async () => {
    writeWorkspace(join(directory, 'app'))
    const command = [...IN_NAMESPACE, `echo 0 > ${LIMIT}; exec "$0" "$@"`, CLIENT]
    const given = argv`--root ${root} --workspace ${workspace} --port 0`
    dev = new DevelopmentProcess(given, command)
    const { message } = await dev.next('notice', 0, 'file watches')
    expect(message).toMatch(/no file watches left.*fs\.inotify.*twice a second/)
    expect(await version()).toBe('1')
    const from = dev.events.length
    save('functions/notes.ts', source(2))
    await dev.next('served', from)
    expect(await version()).toBe('2')
    const later = dev.events.length
    const enter = ['nsenter', '--user', `--target=${dev.pid}`, '--preserve-credentials']
    runSync([...enter, 'sh', '-c', `echo 1000 > ${LIMIT}`], { environment: { PATH } })
    await dev.next('notice', later, 'File watches are available again.')
  })
})

/** The reason why this machine cannot limit the file watches of a process; null if it can. */
function reasonOfLimits(): string | null {
  const limit = [...IN_NAMESPACE, `echo 0 > ${LIMIT}`]
  const { status, stderr } = runSync(limit, { environment: { PATH } })
  return status === 0 ? null : stderr || 'there is no unshare'
}

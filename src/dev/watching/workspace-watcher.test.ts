import {
  type FSWatcher,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type WatcherOptions, type WatchNotice, WorkspaceWatcher } from './workspace-watcher.ts'

let parent = ''
let directory = ''
let watcher: WorkspaceWatcher | null = null
let changes = 0
let notices: WatchNotice[] = []

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'svc-watcher-'))
  directory = join(parent, 'app')
  mkdirSync(join(directory, 'functions'), { recursive: true })
  changes = 0
  notices = []
})
afterEach(() => {
  watcher?.close()
  rmSync(parent, { recursive: true, force: true })
})

function start(options: Partial<WatcherOptions> = {}): void {
  watcher = new WorkspaceWatcher({
    directory,
    onChange: () => void changes++,
    onNotice: (notice) => void notices.push(notice),
    ...options,
  })
}

const at = (path: string): string => join(directory, path)

/** Resolves when more changes were reported than `before`. */
const changedSince = (before: number) => expect.poll(() => changes).toBeGreaterThan(before)

test('a file that is written, renamed over, or removed is a change', async () => {
  writeFileSync(at('schema.ts'), 'a')
  start()
  let before = changes
  writeFileSync(at('schema.ts'), 'b')
  await changedSince(before)
  before = changes
  writeFileSync(at('.schema.ts.tmp'), 'c')
  renameSync(at('.schema.ts.tmp'), at('schema.ts'))
  await changedSince(before)
  before = changes
  rmSync(at('schema.ts'))
  await changedSince(before)
})

test('files of directories that appear later are watched', async () => {
  start()
  mkdirSync(at('functions/admin/deep'), { recursive: true })
  writeFileSync(at('functions/admin/deep/users.ts'), 'a')
  await changedSince(0)
  const before = changes
  writeFileSync(at('functions/admin/deep/users.ts'), 'b')
  await changedSince(before)
  // The Workspace, functions, admin and deep.
  expect(watcher!.watches).toBe(4)
  rmSync(at('functions/admin'), { recursive: true })
  await expect.poll(() => watcher!.watches).toBe(2)
})

test('a directory that is removed and created again at once is watched', {
  tags: ['slow'],
}, async () => {
  start()
  for (let i = 0; i < 20; i++) {
    const before = changes
    rmSync(at('functions'), { recursive: true })
    mkdirSync(at('functions'))
    writeFileSync(at('functions/a.ts'), `a${i}`)
    await changedSince(before)
    const again = changes
    writeFileSync(at('functions/a.ts'), `b${i}`)
    await changedSince(again)
  }
})

test('a checkout of 500 files causes few builds and misses none', async () => {
  start()
  for (let i = 0; i < 500; i++) {
    mkdirSync(at(`functions/f${i % 20}`), { recursive: true })
    writeFileSync(at(`functions/f${i % 20}/g${i}.ts`), String(i))
  }
  await changedSince(0)
  await expect.poll(() => watcher!.watches).toBe(22)
  const before = changes
  // Ten or so, but a busy machine reports the files in more pieces.
  expect(before).toBeLessThan(100)
  writeFileSync(at('functions/f19/g499.ts'), 'last')
  await changedSince(before)
})

test.each([
  ['one file with content', ['whole.ts'], 4],
  ['one file that is empty so far', ['empty.ts'], 12],
  ['several files', ['whole.ts', 'other.ts'], 12],
] as const)('a change of %s is reported after it has rested', (_, files, millis) => {
  writeFileSync(at('whole.ts'), 'a')
  writeFileSync(at('empty.ts'), '')
  vi.useFakeTimers()
  try {
    const listeners = new Map<string, (event: string, name: string) => void>()
    const opened = { on: () => undefined, close: () => undefined }
    const open = ((path: string, listener: never) => {
      listeners.set(path, listener)
      return opened
    }) as unknown as NonNullable<WatcherOptions['open']>
    start({ open })
    for (const file of files) listeners.get(directory)?.('change', file)
    vi.advanceTimersByTime(millis - 1)
    expect(changes).toBe(0)
    vi.advanceTimersByTime(1)
    expect(changes).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

test('a removed Workspace is reported, and watched again when it is back', async () => {
  start()
  rmSync(directory, { recursive: true })
  await expect.poll(() => notices).toEqual(['missing'])
  const before = changes
  mkdirSync(directory)
  writeFileSync(at('schema.ts'), 'a')
  await changedSince(before)
  expect(notices).toEqual(['missing', 'present'])
  const again = changes
  writeFileSync(at('schema.ts'), 'b')
  await changedSince(again)
})

test('a system without watches is reported once, and changes are found by comparison', {
  tags: ['slow'],
}, async () => {
  let left = 1
  const exhausted = ((path: string, listener: never) => {
    if (left-- > 0) return watch(path, listener)
    throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
  }) as unknown as NonNullable<WatcherOptions['open']>
  start({ open: exhausted })
  expect(notices).toEqual(['polling'])
  writeFileSync(at('functions/a.ts'), 'a')
  await changedSince(0)
  const before = changes
  writeFileSync(at('functions/a.ts'), 'b')
  await changedSince(before)
  expect(notices).toEqual(['polling'])
})

test('the comparison ends when watches are available again', async () => {
  let isExhausted = true
  const opened: FSWatcher[] = []
  const open = ((path: string, listener: never) => {
    if (isExhausted) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
    opened.push(watch(path, listener))
    return opened.at(-1)
  }) as unknown as NonNullable<WatcherOptions['open']>
  start({ open })
  isExhausted = false
  await expect.poll(() => notices).toEqual(['polling', 'watching'])
  expect(watcher!.watches).toBe(2)
})

test('changes of generated, installed, hidden and ignored files are not reported', async () => {
  mkdirSync(at('_generated'))
  mkdirSync(at('node_modules'))
  start({ ignored: new Set([at('documents.db')]) })
  for (const path of ['_generated/api.ts', 'node_modules/x.ts', '.swp', 'documents.db', 'a.ts~']) {
    writeFileSync(at(path), 'x')
  }
  // The only relevant change comes last, and so does its report.
  writeFileSync(at('schema.ts'), 'x')
  await changedSince(0)
  expect(changes).toBe(1)
})

test('changes of an included hidden file are reported', async () => {
  start({ included: new Set([at('.env.local')]) })
  const steps = [
    () => writeFileSync(at('.env.local'), 'A=1'),
    () => writeFileSync(at('.env.local'), 'A=2'),
    () => {
      writeFileSync(at('.env.local~'), 'A=3')
      renameSync(at('.env.local~'), at('.env.local'))
    },
    () => rmSync(at('.env.local')),
  ]
  for (const step of steps) {
    const before = changes
    step()
    await changedSince(before)
  }
})

test('a directory outside of the Workspace is watched once files of it are imported', async () => {
  const shared = join(parent, 'shared')
  mkdirSync(shared)
  start()
  watcher!.follow([shared])
  writeFileSync(join(shared, 'texts.ts'), 'a')
  await changedSince(0)
})

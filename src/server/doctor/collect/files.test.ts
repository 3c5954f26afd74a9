/** Goal: readings of files find what is wrong with real files, and count what they leave out. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import type { SegmentState } from '../../../storage/logs/log-inspection.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { realSystem } from '../../../system/system.ts'
import {
  countOrphans,
  listContents,
  readPermissions,
  readQuarantined,
  readSample,
  readTemporary,
} from './files.ts'
import { readSegments } from './segments.ts'
import { inSteps } from './steps.ts'

const system = realSystem()
const HOURS_AGO = new Date(system.nowMillis() - 5 * 3_600_000)
const BOUNDS = { filesMax: 100, bytesMax: 2 ** 20 }
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'doctor-files-'))
  chmodSync(root, 0o700)
  onTestFinished(() => rmSync(root, { recursive: true }))
})

function write(name: string, content = '', mode = 0o600): string {
  const path = join(root, name)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, content, { mode })
  chmodSync(path, mode)
  return path
}

/** Stores a content under its digest, or under that of another content. */
function store(content: string, digestOf = content): string {
  const hex = sha256Hex(digestOf)
  write(`${hex.slice(0, 2)}/${hex.slice(2)}`, content)
  return hex
}

const permissions = (deep = true) => readPermissions(root, { deep, isShared: () => false })

test('open modes and links are defects, and private files are not', async () => {
  write('private')
  write('below/also-private')
  expect(await permissions()).toMatchObject({ defects: [], looked: 4, isPartial: false })
  const open = write('below/open', '', 0o604)
  const link = join(root, 'link')
  symlinkSync('private', link)
  const { defects } = await permissions()
  expect(defects).toEqual(
    expect.arrayContaining([
      { path: open, defect: 'mode' },
      { path: link, defect: 'kind' },
    ]),
  )
  expect(defects).toHaveLength(2)
  expect((await permissions(false)).defects).toEqual([{ path: link, defect: 'kind' }])
})

test('a directory may be readable for others, but not writable', async () => {
  chmodSync(root, 0o755)
  expect((await permissions()).defects).toEqual([])
  chmodSync(root, 0o777)
  expect((await permissions()).defects).toEqual([{ path: root, defect: 'mode' }])
})

test('a shared file may be readable, but not writable', async () => {
  const path = write('service.json', '', 0o644)
  const isShared = (file: string) => file === path
  const shared = () => readPermissions(root, { deep: true, isShared })
  expect((await shared()).defects).toEqual([])
  chmodSync(path, 0o666)
  expect((await shared()).defects).toEqual([{ path, defect: 'mode' }])
})

test('a content under another digest is damaged', async () => {
  store('one')
  const damaged = store('two', 'three')
  const reading = await readSample(root, BOUNDS, system)
  expect(reading).toEqual({
    value: { checked: 2, bytes: 6, total: 2, isPartial: false, damaged: [damaged] },
  })
})

test('a sample ends at its bounds', async () => {
  for (const content of ['one', 'two', 'six']) store(content)
  const files = await readSample(root, { ...BOUNDS, filesMax: 2 }, system)
  expect(files).toMatchObject({ value: { checked: 2, total: 3, damaged: [] } })
  const bytes = await readSample(root, { ...BOUNDS, bytesMax: 1 }, system)
  expect(bytes).toMatchObject({ value: { checked: 1, total: 3, damaged: [] } })
  expect(await readSample(join(root, 'absent'), BOUNDS, system)).toHaveProperty('skipped')
})

test('old contents that nothing uses are orphans, and new ones are not', async () => {
  const hexes = ['used', 'old', 'new'].map((content) => store(content))
  for (const hex of hexes.slice(0, 2)) {
    utimesSync(join(root, hex.slice(0, 2), hex.slice(2)), HOURS_AGO, HOURS_AGO)
  }
  const contents = await listContents(root)
  expect(contents).toMatchObject({ isPartial: false })
  expect(await countOrphans(contents, (hex) => hex === hexes[0], system)).toBe(1)
})

test('a list of contents says that there are more than it has', { tags: ['slow'] }, async () => {
  mkdirSync(join(root, 'ab'))
  for (let i = 0; i < 20_000; i++) {
    writeFileSync(join(root, 'ab', i.toString(16).padStart(62, '0')), '')
  }
  const contents = await listContents(root)
  expect(contents.isPartial).toBe(true)
  expect(contents.paths.length).toBeLessThan(20_000)
  expect(await permissions()).toMatchObject({ isPartial: true })
})

test('unfinished writes are named once they are older than an hour', async () => {
  const old = write('.keyring.json.0a.tmp')
  const staged = write('files/temporary/7')
  const code = write('state/bootstrap/initial-owner.code.next')
  write('.service.json.0b.tmp')
  for (const path of [old, staged, code]) utimesSync(path, HOURS_AGO, HOURS_AGO)
  const { left } = await readTemporary(root, join(root, 'state'), system)
  expect(left.toSorted()).toEqual([old, staged, code].toSorted())
})

test('contents that were set aside are named', async () => {
  expect(await readQuarantined(root)).toEqual([])
  write('files/damaged/00')
  expect(await readQuarantined(root)).toEqual(['00'])
})

test('other work runs between the steps of a long list', async () => {
  const order: string[] = []
  const looked = inSteps(Array.from({ length: 1_000 }), () => void order.push('look'))
  setImmediate(() => order.push('call'))
  await looked
  expect(order.indexOf('call')).toBeGreaterThan(0)
  expect(order.indexOf('call')).toBeLessThan(order.length - 1)
})

function segment(name: string, content: string): SegmentState {
  write(name, content)
  const digest = sha256Hex(content)
  return { name, bytes: content.length, digest, isVerified: true, isHere: true }
}

test('altered, missing and known segments are damaged, and others are not', async () => {
  const [whole, altered, short, missing, known] = ['e', 'd', 'c', 'b', 'a'].map((name) =>
    segment(name, `content ${name}`),
  ) as [SegmentState, SegmentState, SegmentState, SegmentState, SegmentState]
  write(altered.name, 'content x')
  write(short.name, '')
  rmSync(join(root, missing.name))
  const elsewhere = { ...whole, name: 'in-s3', isHere: false }
  const segments = [whole, altered, short, missing, { ...known, isVerified: false }, elsewhere]
  expect(await readSegments(root, segments)).toEqual({
    segments: 6,
    segmentsChecked: 2,
    bytesChecked: 18,
    damagedSegments: ['d', 'c', 'b', 'a'],
  })
})

test('the newest segments are read up to the bound, and all others by their length', {
  tags: ['slow'],
}, async () => {
  const large = 'x'.repeat(40 * 2 ** 20)
  const segments = ['d', 'c', 'b', 'a'].map((name) => segment(name, large))
  write('b', `y${large.slice(1)}`)
  write('a', 'short')
  expect(await readSegments(root, segments)).toMatchObject({
    segments: 4,
    segmentsChecked: 2,
    bytesChecked: 80 * 2 ** 20,
    damagedSegments: ['a'],
  })
})

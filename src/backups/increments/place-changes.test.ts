/** Bases that are made while file systems are mounted over the target, and unmounted. */
import { join } from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { changingTarget } from '../../../testing/backups/changing-target.ts'
import {
  type FollowedServerBench,
  followedServer,
  write,
} from '../../../testing/backups/followed-servers.ts'
import { rebuildState } from '../../../testing/backups/rebuilt-state.ts'
import { ENVIRONMENT_ID } from '../../../testing/product-roots.ts'
import { TestSystem } from '../../system/system.ts'
import type { HistoryId } from '../../value/ids.ts'
import { Opener, recipientOf } from '../format/age-files.ts'
import { listBases, segmentPath } from '../format/chain.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { ContinuousBackup } from './continuous-backup.ts'

const ADDRESS = {
  environmentId: ENVIRONMENT_ID,
  historyId: 'hst_00000000000000000000000001' as HistoryId,
}
const BELOW = [1]
const MOUNTED = [2, 1]

let bench: FollowedServerBench
let secret: string
let below: DirectoryTarget
let mounted: DirectoryTarget
let place: ReturnType<typeof changingTarget>
let backup: ContinuousBackup
/** Called before each write to the target. */
let onWrite: (name: string) => void
/** True if the next look at a file finds the directory below the mount point. */
let isGone: boolean

beforeEach(async () => {
  bench = await followedServer('SQLite', new TestSystem())
  secret = await generateX25519Identity()
  below = new DirectoryTarget(join(bench.directory, 'below'))
  mounted = new DirectoryTarget(join(bench.directory, 'mounted'))
  for (const { location } of [below, mounted]) await Bun.write(join(location, '.keep'), '')
  onWrite = () => undefined
  isGone = false
  await bench.commit([write('notes', 1, '{"a":1}')])
})
afterEach(async () => {
  await backup.stop()
  await bench.close()
})

/** Starts a server whose target is this directory, and waits for its first base. */
async function start(directory: DirectoryTarget, fileSystems: readonly number[]): Promise<void> {
  place = changingTarget(directory, fileSystems)
  const target: BackupTarget = {
    ...place.target,
    sizeOf: (name) => {
      if (!isGone) return place.target.sizeOf(name)
      isGone = false
      return below.sizeOf(name)
    },
    write: (name, bytes) => {
      onWrite(name)
      return place.target.write(name, bytes)
    },
  }
  backup = new ContinuousBackup({
    server: bench.server,
    target,
    recipients: [await recipientOf(secret)],
    historyId: ADDRESS.historyId,
    baseIntervalMillis: 86_400_000,
    retention: { days: 30, bases: 7 },
    // Only the test begins an increment.
    flushMillis: 2 ** 30,
  })
  backup.start()
  await backup.flush()
  await backup.whenBaseEnds()
}

const basesOf = (target: DirectoryTarget) => Array.fromAsync(listBases(target, ADDRESS))
const rebuilt = (target: DirectoryTarget) =>
  rebuildState({ target, opener: new Opener([secret]) }, ADDRESS, bench.keys)

/** Calls `change` with the next write, and not again. */
function changeWithNextWrite(change: () => void): void {
  onWrite = () => {
    onWrite = () => undefined
    change()
  }
}

test.each(['before', 'while'] as const)(
  'a base succeeds where a file system is mounted over the target %s it is made',
  async (moment) => {
    await start(below, BELOW)
    await bench.commit([write('notes', 2, '{"a":2}')])
    const mount = () => place.use(mounted, MOUNTED)
    if (moment === 'before') mount()
    else changeWithNextWrite(mount)
    const { base } = await backup.makeBase('request')
    expect(base.toSequence).toBe(2)
    expect(await basesOf(mounted)).toHaveLength(1)
    await bench.commit([write('notes', 3, '{"a":3}')])
    await backup.flush()
    expect(backup.state()).toMatchObject({ failure: null, newestSequence: 3 })
    expect((await rebuilt(mounted)).documents.size).toBe(3)
  },
)

test('a base succeeds where the target is unmounted for one look at it', async () => {
  await start(mounted, MOUNTED)
  isGone = true
  await backup.makeBase('request')
  expect(isGone).toBe(false)
  expect(await basesOf(mounted)).toHaveLength(2)
  expect(backup.state().failure).toBeNull()
})

test('a base of a target that is unmounted says so, and writes nothing below it', async () => {
  await start(mounted, MOUNTED)
  place.use(below, BELOW)
  await expect(backup.makeBase('request')).rejects.toMatchObject({ code: 'BACKUP_TARGET_CHANGED' })
  expect(await below.names('')).toEqual(['.keep'])
  place.use(mounted, MOUNTED)
  await backup.makeBase('request')
  expect(backup.state().failure).toBeNull()
})

test('a chain that was damaged in its place is corrupt', async () => {
  await start(mounted, MOUNTED)
  const { number } = backup.state().lastBase!
  await Bun.write(join(mounted.location, `${segmentPath(ADDRESS, number)}.json`), 'damaged')
  await expect(backup.makeBase('request')).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
})

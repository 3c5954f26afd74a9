/** Readings of the machine: disks, syncs, limits of the process and its control group. */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  realpathSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { System } from '../../../system/system.ts'
import type { DiskReading, MemoryReading, ProcessReading, SyncReading } from '../readings.ts'

/** Types of file systems that a check names; others are named by the table of mounts. */
const KINDS: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x6969, 'nfs'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x01021997, '9p'],
  [0x65735546, 'fuse'],
  [0x00c36400, 'ceph'],
  [0x794c7630, 'overlayfs'],
  [0xef53, 'ext4'],
  [0x58465342, 'xfs'],
  [0x9123683e, 'btrfs'],
  [0x2fc12fc1, 'zfs'],
])
const WEAK_OPTIONS = ['nobarrier', 'barrier=0', 'data=writeback']
const IGNORES_SYNC = /\S*(?:libeatmydata|libnosync)\S*/g
const SYNC_WRITES = 16
const PAGE_BYTES = 4096

/** `path` exists. */
export function readDisk(path: string, floorBytes: number): DiskReading {
  const { type, bsize, bavail, blocks, ffree, files } = statfsSync(path)
  const mount = mountOf(path)
  return {
    path,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    floorBytes,
    freeInodes: ffree,
    totalInodes: files,
    isWritable: isWritable(path),
    kind: mount?.kind ?? KINDS.get(type) ?? `type ${type.toString(16)}`,
    weakOptions: WEAK_OPTIONS.filter((option) => mount?.options.includes(option)),
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Finds the mount with the longest path above `path`; null if the system has no such table. */
function mountOf(path: string): { readonly kind: string; readonly options: string[] } | null {
  const table = readText('/proc/self/mountinfo')
  if (table === null) return null
  const real = realpathSync(path)
  return parseMounts(table)
    .filter(({ at }) => real === at || at === '/' || real.startsWith(`${at}/`))
    .reduce<Mount | null>((best, each) => {
      return best === null || each.at.length >= best.at.length ? each : best
    }, null)
}

interface Mount {
  readonly at: string
  readonly kind: string
  readonly options: string[]
}

export function parseMounts(table: string): Mount[] {
  return table.split('\n').flatMap((line) => {
    const [fields = '', after = ''] = line.split(' - ')
    const [, , , , at, own = ''] = fields.split(' ')
    const [kind, , shared = ''] = after.split(' ')
    if (at === undefined || kind === undefined) return []
    const path = at.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    )
    const name = kind === 'overlay' ? 'overlayfs' : kind
    return [{ at: path, kind: name, options: [...own.split(','), ...shared.split(',')] }]
  })
}

/** Times some appends of a page with fsync, in a file that has no name once it is open. */
export async function readSync(path: string, system: System): Promise<SyncReading> {
  const suffix = Buffer.from(system.randomBytes(8)).toString('hex')
  const file = join(path, `.doctor.${suffix}.tmp`)
  const handle = await open(file, 'wx', 0o600)
  const times: number[] = []
  try {
    unlinkSync(file)
    const page = Buffer.alloc(PAGE_BYTES, 1)
    for (let write = 0; write < SYNC_WRITES; write++) {
      const begun = system.monotonicMillis()
      await handle.write(page)
      await handle.sync()
      times.push((system.monotonicMillis() - begun) * 1000)
    }
  } finally {
    await handle.close()
  }
  times.sort((a, b) => a - b)
  return {
    path,
    medianMicros: times[SYNC_WRITES / 2]!,
    slowestMicros: times.at(-1)!,
    preloaded: preloaded(),
  }
}

function preloaded(): string[] {
  return [...new Set((readText('/proc/self/maps') ?? '').match(IGNORES_SYNC) ?? [])]
}

/** Reads soft limits of this process. */
export function readProcess(
  wanted: Pick<ProcessReading, 'descriptorsWanted' | 'processesWanted'>,
): ProcessReading {
  const limits = readText('/proc/self/limits') ?? ''
  const tasks = groupNumbers('pids.max', 'pids').reduce<number | null>(least, null)
  return {
    descriptors: parseLimit(limits, 'Max open files'),
    processes: least(parseLimit(limits, 'Max processes'), tasks),
    ...wanted,
    runsAsRoot: process.geteuid?.() === 0,
    exposedExecutable: exposedPath(process.execPath),
  }
}

function least(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other
  return Math.min(one, other)
}

export function parseLimit(limits: string, name: string): number | null {
  const line = limits.split('\n').find((each) => each.startsWith(name))
  const soft = line?.slice(name.length).trim().split(/\s+/)[0]
  return soft === undefined || soft === 'unlimited' ? null : Number(soft)
}

const WRITE_BY_OTHERS = 0o022
const STICKY = 0o1000

/** The path or the directory of it that users of its group, or all, can write; null for none. */
function exposedPath(path: string): string | null {
  if (process.platform === 'win32') return null
  for (const at of [path, dirname(path)]) {
    const { mode, gid } = statSync(at)
    const isOfGroup = (mode & 0o020) !== 0 && gid !== process.getegid?.() && gid !== 0
    const isOpen = (mode & 0o002) !== 0 && (mode & STICKY) === 0
    if ((mode & WRITE_BY_OTHERS) !== 0 && (isOfGroup || isOpen)) return at
  }
  return null
}

export function readMemory(targetMib: number): MemoryReading {
  const limits = groupNumbers('memory.max', 'memory').concat(
    groupNumbers('memory.limit_in_bytes', 'memory'),
  )
  const machineBytes = totalmem()
  const limit = limits.reduce<number | null>(least, null)
  const events = groupPaths('memory').map((path) => readText(join(path, 'memory.events')))
  const kills = /^oom_kill (\d+)$/m.exec(events[0] ?? '')?.[1]
  return {
    targetBytes: targetMib * 1024 * 1024,
    machineBytes,
    groupBytes: limit === null || limit >= machineBytes ? null : limit,
    kills: Number(kills ?? 0),
  }
}

/** The processors of the quota of the control group; null without one. */
export function readQuota(): number | null {
  const quotas = groupPaths('cpu').flatMap((path) => {
    const [quota, period] = (readText(join(path, 'cpu.max')) ?? 'max').trim().split(' ')
    return quota === 'max' || period === undefined ? [] : [Number(quota) / Number(period)]
  })
  return quotas.reduce<number | null>(least, null)
}

/** The directories of the control group of this process and of those above it, its own first. */
function groupPaths(controller: string): string[] {
  const groups = (readText('/proc/self/cgroup') ?? '').split('\n').map((line) => line.split(':'))
  const unified = groups.find(([id]) => id === '0')?.[2]
  const own = groups.find(([, names]) => names?.split(',').includes(controller))?.[2]
  const roots = [
    ['/sys/fs/cgroup', unified],
    [`/sys/fs/cgroup/${controller}`, own],
  ] as const
  return roots.flatMap(([root, group]) => {
    if (group === undefined || !existsSync(root)) return []
    const paths: string[] = []
    for (let at = group; ; at = dirname(at)) {
      paths.push(join(root, at))
      if (at === '/' || at === '.') return paths
    }
  })
}

function groupNumbers(file: string, controller: string): number[] {
  return groupPaths(controller).flatMap((path) => {
    const text = readText(join(path, file))?.trim()
    return text === undefined || !/^\d+$/.test(text) ? [] : [Number(text)]
  })
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** Returns the nearest directory that exists. */
export function existing(path: string): string {
  let at = path
  while (lstatSync(at, { throwIfNoEntry: false }) === undefined) at = dirname(at)
  return at
}

/** Checks of the machine: clocks, disks, limits, memory, processors and the sandbox. */
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import {
  check,
  counted,
  failed,
  listed,
  mebibytes,
  notRead,
  ok,
  seconds,
  type Verdict,
  warning,
} from '../check.ts'
import type { DiskReading } from '../readings.ts'

/** A clock that is stepped during a run, or that runs this much faster, is not disciplined. */
const DRIFT_MILLIS = 100
/** Writes of other processes may be a little ahead of this reading. */
const AHEAD_MILLIS = 5_000
const MIB = 1024 * 1024
const FREE_BYTES_MIN = 64 * MIB
const FREE_BYTES_GOOD = 1024 * MIB
const FREE_SHARE_GOOD = 0.05
const INODES_MIN = 1_000
const INODES_SHARE_GOOD = 0.05
/** No drive and no virtual disk makes a page durable in less: something confirms too early. */
const SYNC_MICROS_MIN = 20
const SYNC_MICROS_GOOD = 50_000

const FIO = 'fio --name=sync --rw=write --bs=4k --size=4m --fsync=1'

/** File systems that lose their content at a restart, and those whose locks or syncs are weak. */
const VOLATILE = ['tmpfs', 'ramfs']
const REMOTE = ['nfs', 'smb', 'cifs', '9p', 'fuse', 'ceph', 'lustre', 'afs']
const LAYERED = ['overlayfs', 'aufs']

export const MACHINE_CHECKS = [
  check({
    name: 'clock-steps',
    why:
      'Expiry of tokens, schedules and retention follow the wall clock; a clock that jumps ' +
      'starts and removes what is not due.',
    repair: 'timedatectl status',
    reads: ({ clock }) => clock,
    evaluate: ({ driftMillis, elapsedMillis }) => {
      const drift = Math.abs(driftMillis)
      const seen =
        `wall and monotonic clock differ by ${Math.round(drift)} ms in ` +
        `${seconds(elapsedMillis)}`
      return drift > DRIFT_MILLIS ? warning(seen) : ok(seen)
    },
  }),
  check({
    name: 'clock-records',
    why:
      'Stored records are newer than the clock: it was ahead, or was set back. What expires ' +
      'and what is due waits for the clock to catch up.',
    repair: 'timedatectl set-ntp true',
    reads: ({ recordTimes }) => recordTimes,
    unread: notRead,
    evaluate: ({ aheadMillis }) =>
      aheadMillis > AHEAD_MILLIS
        ? failed(`the newest record is ${seconds(aheadMillis)} ahead of the clock`)
        : ok('no stored record is ahead of the clock'),
  }),
  check({
    name: 'disk-space',
    why: 'On a full disk Mutations, uploads and changes are 503.',
    repair: 'df -h DIRECTORY',
    reads: ({ disks }) => disks,
    evaluate: (disks) =>
      worst(disks, (disk) => {
        const { path, freeBytes, totalBytes, floorBytes } = disk
        const seen = `${path}: ${mebibytes(freeBytes)} of ${mebibytes(totalBytes)} are free`
        const command = `df -h ${shellQuoted(path)}`
        if (freeBytes <= Math.max(floorBytes, FREE_BYTES_MIN)) return failed(seen, command)
        const good = Math.max(2 * floorBytes, FREE_BYTES_GOOD)
        const isTight = freeBytes < good || freeBytes < totalBytes * FREE_SHARE_GOOD
        return isTight ? warning(seen, command) : ok(seen)
      }),
  }),
  check({
    name: 'disk-inodes',
    why: 'Without free inodes no file can be created, although bytes are free.',
    repair: 'df -i DIRECTORY',
    reads: ({ disks }) => disks,
    evaluate: (disks) =>
      worst(disks, ({ path, freeInodes, totalInodes }) => {
        if (totalInodes === 0) return ok(`${path}: not counted by the file system`)
        const seen = `${path}: ${freeInodes} of ${totalInodes} inodes are free`
        const command = `df -i ${shellQuoted(path)}`
        if (freeInodes < INODES_MIN) return failed(seen, command)
        return freeInodes < totalInodes * INODES_SHARE_GOOD ? warning(seen, command) : ok(seen)
      }),
  }),
  check({
    name: 'disk-writable',
    why:
      'Nothing can be stored; a file system that became read-only usually has errors of its ' +
      'disk.',
    repair: 'findmnt -T DIRECTORY',
    reads: ({ disks }) => disks,
    evaluate: (disks) =>
      worst(disks, ({ path, isWritable }) =>
        isWritable
          ? ok(`${path} can be written`)
          : failed(`${path} cannot be written`, `findmnt -T ${shellQuoted(path)}`),
      ),
  }),
  check({
    name: 'disk-kind',
    why:
      'Locks and syncs of network file systems are weaker than those of a local disk; a file ' +
      'system in memory and the layer of a container lose everything with their end.',
    repair: 'findmnt -T DIRECTORY',
    reads: ({ disks }) => disks,
    evaluate: (disks) =>
      worst(disks, ({ path, kind }) => {
        const seen = `${path}: ${kind}`
        const command = `findmnt -T ${shellQuoted(path)}`
        if (VOLATILE.includes(kind)) return failed(`${seen}, which is in memory`, command)
        if (REMOTE.some((name) => kind.startsWith(name))) {
          return failed(`${seen}, which is not a local disk`, command)
        }
        if (LAYERED.includes(kind)) return warning(`${seen}, the layer of a container`, command)
        return ok(seen)
      }),
  }),
  check({
    name: 'disk-mount-options',
    why:
      'With these options a power failure reorders writes: acknowledged changes are lost, or ' +
      'files damaged.',
    repair: 'findmnt -no OPTIONS -T DIRECTORY',
    reads: ({ disks }) => disks,
    evaluate: (disks) =>
      worst(disks, ({ path, weakOptions }) =>
        weakOptions.length === 0
          ? ok(`${path}: no option weakens syncs`)
          : failed(
              `${path}: ${weakOptions.join(', ')}`,
              `findmnt -no OPTIONS -T ${shellQuoted(path)}`,
            ),
      ),
  }),
  check({
    name: 'fsync-latency',
    why:
      'Acknowledged changes survive a power failure only if fsync waits for the disk. A time ' +
      'shows one that does not wait; that a slow one waits, only a power failure proves.',
    repair: `${FIO} --directory=DIRECTORY`,
    reads: ({ sync }) => sync,
    evaluate: ({ path, medianMicros, slowestMicros }) => {
      const seen = `a page is synced in ${millis(medianMicros)}, at most ${millis(slowestMicros)}`
      const command = `${FIO} --directory=${shellQuoted(path)}`
      if (medianMicros < SYNC_MICROS_MIN) {
        return failed(`${seen}: faster than any disk`, command)
      }
      return medianMicros > SYNC_MICROS_GOOD
        ? warning(`${seen}: each Mutation waits for it`, command)
        : ok(seen)
    },
  }),
  check({
    name: 'fsync-preload',
    why:
      'A library that ignores fsync is loaded: every acknowledged change since the last write ' +
      'of the system is lost with the power.',
    repair: 'unset LD_PRELOAD',
    reads: ({ sync }) => sync,
    unread: notRead,
    evaluate: ({ preloaded }) =>
      preloaded.length === 0
        ? ok('no library that ignores fsync is loaded')
        : failed(`loaded: ${listed(preloaded)}`),
  }),
  check({
    name: 'descriptors',
    why:
      'Each connection and each open file takes a descriptor; without one, connections are ' +
      'refused and stores fail.',
    repair: 'ulimit -n NUMBER',
    reads: (readings) => readings.process,
    evaluate: ({ descriptors, descriptorsWanted }) => {
      if (descriptors === null) return ok('no limit')
      const seen = `the limit is ${descriptors}, and the settings allow for ${descriptorsWanted}`
      const command = `ulimit -n ${Math.max(DESCRIPTORS_USUAL, descriptorsWanted)}`
      if (descriptors < DESCRIPTORS_MIN) return failed(seen, command)
      return descriptors < descriptorsWanted ? warning(seen, command) : ok(seen)
    },
  }),
  check({
    name: 'processes',
    why:
      'Functions run in processes of their own; at the limit no runner starts, and calls are ' +
      '503.',
    repair: 'ulimit -u unlimited; systemctl set-property svc-server TasksMax=infinity',
    reads: (readings) => readings.process,
    evaluate: ({ processes, processesWanted }) => {
      if (processes === null) return ok('no limit')
      const seen = `the limit is ${processes}, and up to ${processesWanted} may be needed`
      return processes < processesWanted ? warning(seen) : ok(seen)
    },
  }),
  check({
    name: 'user',
    why: 'A fault in a server that runs as root reaches every file of the machine.',
    repair: 'sudo -u svc svc-server serve',
    reads: (readings) => readings.process,
    evaluate: ({ runsAsRoot }) =>
      runsAsRoot ? warning('this process runs as root') : ok('it does not run as root'),
  }),
  check({
    name: 'executable',
    why: 'A user who can replace the executable gets all secrets of the server at its next start.',
    repair: 'chmod go-w FILE',
    reads: (readings) => readings.process,
    evaluate: ({ exposedExecutable }) =>
      exposedExecutable === null
        ? ok('other users cannot write it')
        : failed(
            `other users can write ${exposedExecutable}`,
            `chmod go-w ${shellQuoted(exposedExecutable)}`,
          ),
  }),
  check({
    name: 'memory-limit',
    why:
      'Calls, uploads and Functions need memory beyond the target; at the limit of the control ' +
      'group the kernel kills processes.',
    repair: 'systemctl set-property svc-server MemoryMax=SIZE',
    reads: ({ memory }) => memory,
    evaluate: ({ groupBytes, targetBytes }) => {
      if (groupBytes === null) return ok('the control group has no limit')
      const seen = `limit ${mebibytes(groupBytes)}, target ${mebibytes(targetBytes)}`
      const wanted = Math.ceil((2 * targetBytes) / MIB)
      const command = `systemctl set-property svc-server MemoryMax=${wanted}M`
      if (groupBytes <= targetBytes) return failed(seen, command)
      return groupBytes < 2 * targetBytes ? warning(seen, command) : ok(seen)
    },
  }),
  check({
    name: 'memory-target',
    why: 'A target that the machine cannot give makes it swap, and every call slow.',
    repair: 'export SERVICE_MEMORY_TARGET=MIB',
    reads: ({ memory }) => memory,
    evaluate: ({ targetBytes, machineBytes }) => {
      const seen = `target ${mebibytes(targetBytes)} of ${mebibytes(machineBytes)}`
      const half = Math.floor(machineBytes / 2 / MIB)
      return targetBytes > machineBytes * TARGET_SHARE_MAX
        ? warning(seen, `export SERVICE_MEMORY_TARGET=${half}`)
        : ok(seen)
    },
  }),
  check({
    name: 'memory-kills',
    why:
      'The kernel has killed processes of this control group for want of memory; their calls ' +
      'were lost or repeated.',
    repair: 'journalctl -k --grep=oom-kill',
    reads: ({ memory }) => memory,
    evaluate: ({ kills }) =>
      kills === 0
        ? ok('no process was killed')
        : warning(`${kills} since the control group was made`),
  }),
  check({
    name: 'processors',
    why: 'Processes beyond the processors wait for each other, and calls take longer.',
    repair: 'export SERVICE_APPLICATION_PROCESSES=NUMBER',
    reads: (readings) => readings.processors,
    evaluate: ({ available, quota, applicationProcesses }) => {
      const usable = Math.min(available, quota ?? available)
      const seen =
        `${counted(usable, 'processor')}, ` +
        counted(applicationProcesses, 'application process', 'application processes')
      if (usable < 1) return warning(`${seen}: less than one processor`)
      const half = Math.max(1, Math.floor(usable / 2))
      return applicationProcesses > Math.max(1, usable)
        ? warning(seen, `export SERVICE_APPLICATION_PROCESSES=${half}`)
        : ok(seen)
    },
  }),
  check({
    name: 'sandbox',
    why:
      'Without full containment the kernel does not keep code of a Release from files and the ' +
      'network.',
    repair: 'svc docs security',
    reads: ({ sandbox }) => sandbox,
    evaluate: ({ level, isRequired, detail }) => {
      if (level === 'full') return ok('every layer holds the known escapes')
      const seen = detail === '' ? `containment is ${level}` : `containment is ${level}: ${detail}`
      return isRequired ? failed(seen) : warning(seen)
    },
  }),
  check({
    name: 'sqlite-version',
    why:
      'Versions of SQLite before 3.51.3 can damage a database in WAL mode when a checkpoint ' +
      'and a writer reset the log at the same time. On macOS the library of the system is used.',
    repair: 'softwareupdate --install --recommended',
    reads: ({ sqliteVersion }) => sqliteVersion,
    evaluate: (version) =>
      isAtLeast(version, SQLITE_MIN)
        ? ok(version)
        : failed(`${version} is older than ${SQLITE_MIN.join('.')}`),
  }),
] as const

const DESCRIPTORS_MIN = 256
/** The limit of the service in dist-config/svc-server.service. */
const DESCRIPTORS_USUAL = 65_536
const TARGET_SHARE_MAX = 0.75
const SQLITE_MIN = [3, 51, 3] as const

function isAtLeast(version: string, [major, minor, patch]: typeof SQLITE_MIN): boolean {
  const [a = 0, b = 0, c = 0] = version.split('.').map(Number)
  if (a !== major) return a > major
  return b !== minor ? b > minor : c >= patch
}

const RANKS = ['ok', 'skipped', 'warning', 'failed'] as const

/** Returns the worst verdict, or all that was seen if every disk is in order. */
function worst(disks: readonly DiskReading[], evaluate: (disk: DiskReading) => Verdict): Verdict {
  const verdicts = disks.map(evaluate)
  const rank = ({ status }: Verdict): number => RANKS.indexOf(status)
  const last = verdicts.toSorted((a, b) => rank(b) - rank(a))[0]
  if (last !== undefined && last.status !== 'ok') return last
  return ok(verdicts.map(({ seen }) => seen).join('; '))
}

function millis(micros: number): string {
  return `${(micros / 1000).toFixed(2)} ms`
}

/** Privileges that a runner drops before it loads code: priority, limits, capabilities, root. */
import { ptr } from 'bun:ffi'
import { libc } from '../kernel/libc.ts'
import { THREADS_MAX } from '../protocol/messages.ts'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const PR_CAPBSET_DROP = 24
const PR_SET_NO_NEW_PRIVS = 38
const CAPSET = process.arch === 'x64' ? 126 : 91
const CAPABILITY_VERSION_3 = 0x2008_0522
/** Newer kernels have more; dropping one that does not exist fails, which ends the loop. */
const CAPABILITIES_MAX = 64
const CAP_DAC_OVERRIDE = 1
const CAP_SETGID = 6
const CAP_SETUID = 7
const CAP_SETPCAP = 8

const RLIMIT_FSIZE = 1
const RLIMIT_DATA = 2
const RLIMIT_CORE = 4
const RLIMIT_NPROC = 6
const RLIMIT_NOFILE = 7
const SCHED_SETSCHEDULER = process.arch === 'x64' ? 144 : 119
const SCHED_BATCH = 3
const SETPRIORITY = process.arch === 'x64' ? 141 : 140
const PRIO_PROCESS = 0
/** A third of the weight of the server, where both want a processor. */
const NICE = 5
const F_SETFD = 2
const CLOSE_RANGE = 436
const CLOSE_RANGE_CLOEXEC = 4

/** Above every account that a distribution or a directory service assigns, below 2^31. */
const RUNNER_UID_BASE = 2_000_000_000
const NOBODY = 65_534
const DESCRIPTORS_MAX = 64

export function forbidNewPrivileges(): boolean {
  return libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) === 0
}

/** Ends this process with its parent: it could loop on after that. A change of user undoes this. */
export function dieWithParent(): void {
  libc().prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
}

/** Closes descriptors from `first` on at the next exec. */
export function closeOnExec(first: number): void {
  libc().syscall(CLOSE_RANGE, first, 0xffff_ffff, CLOSE_RANGE_CLOEXEC, 0, 0)
}

/** Leaves a descriptor open at the next exec. The runtime closes all but the first four. */
export function keepOnExec(descriptor: number): void {
  libc().fcntl(descriptor, F_SETFD, 0)
}

/**
 * Enters the batch class of the scheduler: a runner that wakes up does not preempt the server,
 * which all other calls wait for. On two processors, that gives 6% more Queries a second. Functions
 * that take all processors must not take the server's share, with which it rejects further calls
 * and answers operators.
 */
export function giveWay(): void {
  const priority = new Int32Array(1)
  libc().syscall(SCHED_SETSCHEDULER, 0, SCHED_BATCH, ptr(priority), 0, 0)
  libc().syscall(SETPRIORITY, PRIO_PROCESS, 0, NICE, 0, 0)
}

export function limitResources(): void {
  limit(RLIMIT_CORE, 0)
  limit(RLIMIT_FSIZE, 0)
  limit(RLIMIT_NOFILE, DESCRIPTORS_MAX)
}

/** Limits private writable memory to some bytes; an allocation beyond fails or crashes. */
export function limitData(bytes: number): void {
  limit(RLIMIT_DATA, bytes)
}

/**
 * Drops all capabilities of root but those that the next exec and the change of user need. Only its
 * owner may have access to the executable, so it is opened as root and the user changes afterwards.
 */
export function keepOnlyWhatChangesUser(): void {
  if (process.getuid?.() !== 0) return
  const kept = (1 << CAP_DAC_OVERRIDE) | (1 << CAP_SETGID) | (1 << CAP_SETUID)
  // Root's permitted set after exec is bounding and inheritable together, so what is kept becomes
  // inheritable while it is still in the bounding set, which is emptied permanently.
  setCapabilities({ held: kept | (1 << CAP_SETPCAP), inheritable: kept })
  for (let capability = 0; capability < CAPABILITIES_MAX; capability++) {
    if (libc().prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) !== 0) break
  }
  setCapabilities({ held: kept, inheritable: kept })
}

/** Changes to a user of its own, in every thread; tells whether it is no longer root. */
export function leaveRoot(): boolean {
  if (process.getuid?.() !== 0) return true
  libc().setgroups(0, null)
  for (const user of [RUNNER_UID_BASE + process.pid, NOBODY]) {
    if (libc().setresgid(user, user, user) !== 0) continue
    if (libc().setresuid(user, user, user) !== 0) continue
    setCapabilities({ held: 0, inheritable: 0 })
    // Counted for each user, so it binds only where the user is this runner's own.
    if (user !== NOBODY) limit(RLIMIT_NPROC, THREADS_MAX)
    break
  }
  return process.getuid?.() !== 0
}

function setCapabilities({ held, inheritable }: { held: number; inheritable: number }): void {
  const header = new Uint32Array([CAPABILITY_VERSION_3, 0])
  // Effective, permitted, inheritable; then the same for capabilities 32 and above.
  const data = new Uint32Array([held, held, inheritable, 0, 0, 0])
  libc().syscall(CAPSET, ptr(header), ptr(data), 0, 0, 0)
}

function limit(resource: number, value: number): void {
  libc().setrlimit(resource, new BigUint64Array([BigInt(value), BigInt(value)]))
}

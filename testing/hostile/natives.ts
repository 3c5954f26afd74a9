/**
 * Native code of an attacker who has left the realm: it enters the sandbox of a runner, makes the
 * system calls of an attack and prints the result of each. With `bare` it enters no sandbox, which
 * shows that the attempts are real.
 */
import { writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { errno, libc } from '../../src/runner/kernel/libc.ts'
import { lockDown, restrictAndRestart } from '../../src/runner/sandbox/containment.ts'
import { filterProbes, landlockProbes, runProbes } from '../../src/runner/sandbox/self-tests.ts'

export interface NativeReport {
  readonly user: number
  /** Errno of each call; 0 if it succeeded. */
  readonly calls: Readonly<Record<string, number>>
  readonly probes: readonly (readonly [string, boolean])[]
}

/** Numbers on x64 and on arm64, or null if it lacks the call; then arguments. */
const CALLS: Readonly<Record<string, readonly [number | null, number | null, ...number[]]>> = {
  open: [2, null],
  openat: [257, 56, -100],
  openat2: [437, 437, -100],
  openByX32: [0x4000_0002, null],
  execve: [59, 221],
  execveat: [322, 281],
  fork: [57, null],
  vfork: [58, null],
  clone: [56, 220, 17],
  clone3: [435, 435],
  socket: [41, 198, 2, 1],
  socketpair: [53, 199, 1, 1],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  accept4: [288, 242],
  sendto: [44, 206, 1],
  sendmsg: [46, 211, 1],
  recvmsg: [47, 212],
  ptrace: [101, 117, 16, 1],
  process_vm_readv: [310, 270, 1],
  process_vm_writev: [311, 271, 1],
  kill: [62, 129, 1, 0],
  killAll: [62, 129, -1, 0],
  tgkill: [234, 131, 1, 1],
  rt_sigqueueinfo: [129, 138, 1],
  pidfd_open: [434, 434, 1],
  pidfd_getfd: [438, 438],
  pidfd_send_signal: [424, 424],
  mount: [165, 40],
  pivot_root: [155, 41],
  chroot: [161, 51],
  unshare: [272, 97, 0x1000_0000],
  setns: [308, 268],
  bpf: [321, 280],
  keyctl: [250, 219],
  add_key: [248, 217],
  perf_event_open: [298, 241],
  io_uring_setup: [425, 425, 1],
  userfaultfd: [323, 282],
  memfd_create: [319, 279],
  inotify_init1: [294, 26],
  setresuid: [117, 147],
  setuid: [105, 146],
  setgid: [106, 144],
  capset: [126, 91],
  seccomp: [317, 277, 1],
  dumpable: [157, 167, 4, 0],
  ftruncate: [77, 46, 1],
  fallocate: [285, 47, 1],
  truncate: [76, 45],
  mkdirat: [258, 34, -100],
  unlinkat: [263, 35, -100],
  renameat2: [316, 276, -100],
  linkat: [265, 37, -100],
  symlinkat: [266, 36],
  statx: [332, 291, -100],
  newfstatat: [262, 79, -100],
  readlinkat: [267, 78, -100],
  getdents64: [217, 61],
  chdir: [80, 49],
  fchdir: [81, 50],
  pipe2: [293, 59],
  dup: [32, 23],
  fcntl: [72, 25],
  ioctl: [16, 29],
  sendfile: [40, 71, 1],
  splice: [275, 76],
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  memfd_secret: [447, 447],
  remap_file_pages: [216, 234],
  mlock: [149, 228],
  mlockall: [151, 230, 1],
  msgget: [68, 186],
  semget: [64, 190],
  mq_open: [240, 180],
  reboot: [169, 142],
  init_module: [175, 105],
  kexec_load: [246, 104],
  prlimit64: [302, 261],
  setrlimit: [160, 164],
  clock_settime: [227, 112],
  personality: [135, 92],
  timerfd_create: [283, 85],
  eventfd2: [290, 19],
  epoll_create1: [291, 20],
  landlock_create_ruleset: [444, 444],
  unknown: [9_999, 9_999],
}

function attempt([x64, arm64, ...rest]: readonly (number | null)[]): number {
  const number = process.arch === 'x64' ? x64 : arm64
  if (number === null || number === undefined) return 38
  const [a = 0, b = 0] = rest as number[]
  return libc().syscall(number, a, b, 0, 0, 0) < 0 ? errno() : 0
}

function report(bare: boolean, landlock: number): NativeReport {
  const parent = process.ppid
  // An exec that succeeds would replace this program, and a fork would duplicate it.
  const probes = bare
    ? [...landlockProbes(7, parent), ...filterProbes(parent)].filter(
        ([name]) => !/exec|fork/.test(name),
      )
    : landlockProbes(landlock, parent)
  const before = runProbes(probes)
  if (bare) return { user: process.getuid!(), calls: {}, probes: before }
  lockDown(landlock)
  const calls: Record<string, number> = {}
  for (const [name, call] of Object.entries(CALLS)) calls[name] = attempt(call)
  return {
    user: process.getuid!(),
    calls,
    probes: [...before, ...runProbes(filterProbes(parent))],
  }
}

if (import.meta.main) {
  const [, script = '', mode = '', landlock = '0'] = process.argv
  if (mode === '') {
    const source = resolve(import.meta.dirname, '../../src')
    const sourceTrees = [source, import.meta.dirname]
    restrictAndRestart({ arguments: [script, 'contained'], sourceTrees })
  }
  writeSync(1, JSON.stringify(report(mode === 'bare', Number(landlock))))
  process.exit(0)
}

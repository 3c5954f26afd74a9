/**
 * The system calls that a running runner may make: private memory, its own threads, clocks, and
 * reads and writes on descriptors that it already has. All others fail, also those that later
 * kernels add.
 */
import { ptr } from 'bun:ffi'
import { isMusl, libc } from '../kernel/libc.ts'

interface Architecture {
  /** AUDIT_ARCH_*: a 32-bit call has other numbers and must not pass. */
  readonly audit: number
  readonly seccomp: number
  readonly clone: number
  readonly mmap: number
  readonly prctl: number
  readonly tgkill: number
  readonly tkill: number
  readonly allowed: readonly number[]
}

// In both lists: read readv write writev close fstat lseek pread64 mprotect munmap mremap
// madvise brk rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack sched_yield nanosleep
// clock_gettime clock_getres clock_nanosleep gettimeofday getpid gettid getrandom futex membarrier
// set_robust_list rseq sched_getaffinity getcpu getrusage sysinfo ppoll epoll_ctl epoll_pwait
// restart_syscall exit exit_group; and where x86 has it: poll epoll_wait time.
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000_003e,
    seccomp: 317,
    clone: 56,
    mmap: 9,
    prctl: 157,
    tgkill: 234,
    tkill: 200,
    allowed: [
      0, 1, 3, 5, 7, 8, 10, 11, 12, 13, 14, 15, 17, 19, 20, 24, 25, 28, 35, 39, 60, 96, 98, 99, 131,
      186, 201, 202, 204, 219, 228, 229, 230, 231, 232, 233, 273, 281, 271, 309, 318, 324, 334,
    ],
  },
  arm64: {
    audit: 0xc000_00b7,
    seccomp: 277,
    clone: 220,
    mmap: 222,
    prctl: 167,
    tgkill: 131,
    tkill: 130,
    allowed: [
      21, 22, 57, 62, 63, 64, 65, 66, 67, 73, 80, 93, 94, 98, 99, 101, 113, 114, 115, 123, 124, 128,
      132, 134, 135, 139, 165, 168, 169, 172, 178, 179, 214, 215, 216, 226, 233, 278, 283, 293,
    ],
  },
}

const LOAD = 0x20
const AND = 0x54
const JUMP_EQUAL = 0x15
const JUMP_SET = 0x45
const RETURN = 0x06
const OFFSET_NUMBER = 0
const OFFSET_ARCHITECTURE = 4
const OFFSET_FIRST_ARGUMENT = 16
const OFFSET_FOURTH_ARGUMENT = 40
const ALLOW = 0x7fff_0000
const KILL_PROCESS = 0x8000_0000
/** ENOSYS: the C library then takes the older call, such as clone for clone3. */
const REJECT = 0x0005_0000 | 38

const CLONE_THREAD = 0x0001_0000
const MAP_PRIVATE = 0x02
/** The bits of the flags that say how a mapping is shared. */
const MAP_TYPE = 0x0f
const MAP_GROWSDOWN = 0x0100
const PR_SET_NAME = 15
const PR_SET_VMA = 0x5356_4d41
const SECCOMP_SET_MODE_FILTER = 1
const SECCOMP_FILTER_FLAG_TSYNC = 1

/** One instruction of the filter: code, jump if true, jump if false, constant. */
type Instruction = readonly [code: number, yes: number, no: number, k: number]

/** Filters every thread and tells whether that succeeded; `no_new_privs` must be set before. */
export function restrictSystemCalls(): boolean {
  const architecture = ARCHITECTURES[process.arch]
  if (architecture === undefined) return false
  const filter = assemble(program(architecture, process.pid))
  // struct sock_fprog: u16 length, padding, pointer.
  const fprog = new DataView(new ArrayBuffer(16))
  fprog.setUint16(0, filter.length / 8, true)
  fprog.setBigUint64(8, BigInt(ptr(filter)), true)
  return (
    Number(
      libc().syscall(
        architecture.seccomp,
        SECCOMP_SET_MODE_FILTER,
        SECCOMP_FILTER_FLAG_TSYNC,
        ptr(fprog),
        0,
        0,
      ),
    ) === 0
  )
}

function program(architecture: Architecture, pid: number): Instruction[] {
  return [
    [LOAD, 0, 0, OFFSET_ARCHITECTURE],
    [JUMP_EQUAL, 1, 0, architecture.audit],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, OFFSET_NUMBER],
    // musl signals a thread without naming its process; Landlock keeps such signals inside.
    ...[...architecture.allowed, ...(isMusl() ? [architecture.tkill] : [])].flatMap(
      (number): Instruction[] => [
        [JUMP_EQUAL, 0, 1, number],
        [RETURN, 0, 0, ALLOW],
      ],
    ),
    // Threads, not processes.
    ...when(architecture.clone, OFFSET_FIRST_ARGUMENT, [
      [JUMP_SET, 0, 1, CLONE_THREAD],
      [RETURN, 0, 0, ALLOW],
    ]),
    // RLIMIT_DATA counts neither shared memory nor a stack that grows; the runtime maps neither.
    ...when(architecture.mmap, OFFSET_FOURTH_ARGUMENT, [
      [AND, 0, 0, MAP_TYPE | MAP_GROWSDOWN],
      [JUMP_EQUAL, 0, 1, MAP_PRIVATE],
      [RETURN, 0, 0, ALLOW],
    ]),
    // The collector stops its own threads with signals.
    ...when(architecture.tgkill, OFFSET_FIRST_ARGUMENT, [
      [JUMP_EQUAL, 0, 1, pid],
      [RETURN, 0, 0, ALLOW],
    ]),
    ...when(architecture.prctl, OFFSET_FIRST_ARGUMENT, [
      [JUMP_EQUAL, 0, 1, PR_SET_NAME],
      [RETURN, 0, 0, ALLOW],
      [JUMP_EQUAL, 0, 1, PR_SET_VMA],
      [RETURN, 0, 0, ALLOW],
    ]),
    [RETURN, 0, 0, REJECT],
  ]
}

/** Tests the low half of one argument of one call, which fails unless a test allows it. */
function when(number: number, argument: number, tests: readonly Instruction[]): Instruction[] {
  return [
    [JUMP_EQUAL, 0, tests.length + 2, number],
    [LOAD, 0, 0, argument],
    ...tests,
    [RETURN, 0, 0, REJECT],
  ]
}

function assemble(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(instructions.length * 8))
  instructions.forEach(([code, yes, no, k], i) => {
    bytes.setUint16(i * 8, code, true)
    bytes.setUint8(i * 8 + 2, yes)
    bytes.setUint8(i * 8 + 3, no)
    bytes.setUint32(i * 8 + 4, k >>> 0, true)
  })
  return new Uint8Array(bytes.buffer)
}

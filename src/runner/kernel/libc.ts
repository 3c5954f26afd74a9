/** The calls of the C library that sandbox a runner; the only native calls of a runner on Linux. */
import { dlopen, FFIType, type Pointer, ptr, read, toArrayBuffer } from 'bun:ffi'

type Bytes = NodeJS.TypedArray | DataView
/** Memory whose address is passed, or a null pointer. */
type Address = Bytes | null

/** Linux only. Each function returns what C returns; `errno` has the reason of a failure. */
export interface Libc {
  syscall(number: number, a: number, b: number, c: number, d: number, e: number): number
  prctl(option: number, a: number, b: number, c: number, d: number): number
  open(path: Bytes, flags: number, mode: number): number
  close(fd: number): number
  dup2(from: number, to: number): number
  setrlimit(resource: number, limits: Bytes): number
  execve(path: Bytes, argv: Bytes, envp: Bytes): number
  setgroups(count: number, groups: Address): number
  setresgid(real: number, effective: number, saved: number): number
  setresuid(real: number, effective: number, saved: number): number
  mmap(at: null, bytes: number, access: number, flags: number, fd: number, from: number): number
  memfd_create(name: Bytes, flags: number): number
  ftruncate(fd: number, bytes: number): number
  fcntl(fd: number, command: number, argument: number): number
  clock_gettime(clock: number, time: Bytes): number
  getpagesize(): number
  kill(pid: number, signal: number): number
  fork(): number
  _exit(status: number): void
  socket(domain: number, type: number, protocol: number): number
  connect(fd: number, address: Bytes, length: number): number
  sched_getcpu(): number
  sched_getaffinity(thread: number, bytes: number, mask: Bytes): number
  sched_setaffinity(thread: number, bytes: number, mask: Bytes): number
  __errno_location(): Pointer
}

const I32 = FFIType.i32
const I64 = FFIType.i64_fast
const U64 = FFIType.u64_fast
const PTR = FFIType.ptr

const SYMBOLS = {
  syscall: { args: [I64, U64, U64, U64, U64, U64], returns: I64 },
  prctl: { args: [I32, U64, U64, U64, U64], returns: I32 },
  open: { args: [PTR, I32, I32], returns: I32 },
  close: { args: [I32], returns: I32 },
  dup2: { args: [I32, I32], returns: I32 },
  setrlimit: { args: [I32, PTR], returns: I32 },
  execve: { args: [PTR, PTR, PTR], returns: I32 },
  setgroups: { args: [U64, PTR], returns: I32 },
  setresgid: { args: [I32, I32, I32], returns: I32 },
  setresuid: { args: [I32, I32, I32], returns: I32 },
  mmap: { args: [PTR, U64, I32, I32, I32, I64], returns: I64 },
  memfd_create: { args: [PTR, I32], returns: I32 },
  ftruncate: { args: [I32, I64], returns: I32 },
  fcntl: { args: [I32, I32, I32], returns: I32 },
  clock_gettime: { args: [I32, PTR], returns: I32 },
  getpagesize: { args: [], returns: I32 },
  kill: { args: [I32, I32], returns: I32 },
  fork: { args: [], returns: I32 },
  _exit: { args: [I32], returns: FFIType.void },
  socket: { args: [I32, I32, I32], returns: I32 },
  connect: { args: [I32, PTR, I32], returns: I32 },
  sched_getcpu: { args: [], returns: I32 },
  sched_getaffinity: { args: [I32, U64, PTR], returns: I32 },
  sched_setaffinity: { args: [I32, U64, PTR], returns: I32 },
  __errno_location: { args: [], returns: PTR },
} satisfies Record<keyof Libc, { args: FFIType[]; returns: FFIType }>

let opened: { readonly symbols: Libc; readonly musl: boolean } | null = null

/** Opens the C library: glibc, otherwise musl. */
export function libc(): Libc {
  opened ??= open()
  return opened.symbols
}

export function isMusl(): boolean {
  opened ??= open()
  return opened.musl
}

function open(): { readonly symbols: Libc; readonly musl: boolean } {
  const library = (name: string) => dlopen(name, SYMBOLS).symbols as unknown as Libc
  try {
    return { symbols: library('libc.so.6'), musl: false }
  } catch {
    const machine = process.arch === 'x64' ? 'x86_64' : 'aarch64'
    return { symbols: library(`libc.musl-${machine}.so.1`), musl: true }
  }
}

/** Returns the error of this thread's last call; only a hint, since the engine may overwrite it. */
export function errno(): number {
  return read.i32(libc().__errno_location(), 0)
}

export function cText(text: string): Buffer {
  return Buffer.from(`${text}\0`)
}

/** Makes a null-terminated vector of C strings in one block of memory, followed by the strings. */
export function cVector(texts: readonly string[]): Uint8Array {
  const strings = Buffer.from(texts.map((text) => `${text}\0`).join(''))
  const vectorBytes = (texts.length + 1) * 8
  const memory = new Uint8Array(vectorBytes + strings.length)
  memory.set(strings, vectorBytes)
  const pointers = new DataView(memory.buffer)
  let at = ptr(memory) + vectorBytes
  texts.forEach((text, i) => {
    pointers.setBigUint64(i * 8, BigInt(at), true)
    at += Buffer.byteLength(text) + 1
  })
  return memory
}

const PROT_READ_WRITE = 3
const MAP_SHARED = 1

/** Maps a file that another process reads; null if the kernel rejects that. */
export function mapShared(fd: number, bytes: number): ArrayBuffer | null {
  const at = libc().mmap(null, bytes, PROT_READ_WRITE, MAP_SHARED, fd, 0)
  return at > 0 ? toArrayBuffer(at as Pointer, 0, bytes) : null
}

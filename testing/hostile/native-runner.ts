/**
 * A runner whose realm an attacker has left: it enters its sandbox, greets and loads like every
 * runner, and then takes memory, threads or CPU with native code, as the arguments of a call say.
 * With `idle` it ends the call first, so that the attack runs while no call is in flight.
 */
import { dlopen, FFIType, type Pointer, ptr } from 'bun:ffi'
import { readFileSync, readSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { cText, isMusl, libc } from '../../src/runner/kernel/libc.ts'
import { Progress } from '../../src/runner/kernel/progress.ts'
import { FRAMES_DESCRIPTOR, FrameReader, FrameWriter } from '../../src/runner/protocol/frames.ts'
import { lockDown, restrictAndRestart } from '../../src/runner/sandbox/containment.ts'

export interface NativeAttack {
  readonly attack: keyof typeof ATTACKS
  /** Bytes of memory, or number of threads. */
  readonly amount: number
  readonly idle: boolean
}

const { PTR, I32, U64, VOID } = {
  PTR: FFIType.ptr,
  I32: FFIType.i32,
  U64: FFIType.u64_fast,
  VOID: FFIType.void,
}

const NATIVE = dlopen(isMusl() ? `libc.musl-${machine()}.so.1` : 'libc.so.6', {
  memset: { args: [U64, I32, U64], returns: VOID },
  mprotect: { args: [U64, U64, I32], returns: I32 },
  dlsym: { args: [PTR, PTR], returns: PTR },
  pthread_attr_init: { args: [PTR], returns: I32 },
  pthread_attr_setstacksize: { args: [PTR, U64], returns: I32 },
  pthread_create: { args: [PTR, PTR, PTR, PTR], returns: I32 },
}).symbols

const PROT_READ = 1
const PROT_READ_WRITE = 3
const MAP_SHARED = 1
const MAP_PRIVATE = 2
const MAP_ANONYMOUS = 0x20
const MAP_GROWSDOWN = 0x100
const CHUNK_BYTES = 64 * 1024 * 1024
const STACK_BYTES = 64 * 1024

/** The attacks. Each returns the amount that it holds. */
const ATTACKS = {
  sharedMemory: (bytes: number) => map(bytes, MAP_SHARED | MAP_ANONYMOUS),
  stackMemory: (bytes: number) => map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN),
  privateMemory: (bytes: number) => map(bytes, MAP_PRIVATE | MAP_ANONYMOUS),
  /** Takes private memory and makes it read-only: the kernel then counts it against no limit. */
  readOnlyMemory: (bytes: number) => {
    let held = 0
    for (; held < bytes; held += CHUNK_BYTES) {
      const at = libc().mmap(null, CHUNK_BYTES, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
      if (at <= 0) break
      NATIVE.memset(at, 1, CHUNK_BYTES)
      NATIVE.mprotect(at, CHUNK_BYTES, PROT_READ)
    }
    return held
  },
  /** Memory that the engine reserved before any limit, and hardly uses. */
  reservedMemory: (bytes: number) => {
    const held = Math.min(bytes, reserved.bytes / 2)
    NATIVE.memset(reserved.at + reserved.bytes / 2, 1, held)
    return held
  },
  sleepingThreads: (count: number) => startThreads(count, 'sleep', 600),
  spinningThreads: (count: number) => {
    NATIVE_LOCK[0] = -1
    return startThreads(count, 'pthread_spin_lock', ptr(NATIVE_LOCK))
  },
  loop: (): number => {
    for (;;);
  },
} as const

/** Locked state of a spin lock, in every C library. */
const NATIVE_LOCK = new Int32Array(4)
const ATTRIBUTES = new Uint8Array(128)
const THREAD = new BigUint64Array(1)

function map(bytes: number, flags: number): number {
  const at = libc().mmap(null, bytes, PROT_READ_WRITE, flags, -1, 0)
  if (at <= 0) return 0
  NATIVE.memset(at, 1, bytes)
  return bytes
}

/** Starts threads that each run a function of the C library with one argument. */
function startThreads(count: number, name: string, argument: number): number {
  const start = NATIVE.dlsym(null, cText(name))
  NATIVE.pthread_attr_init(ATTRIBUTES)
  NATIVE.pthread_attr_setstacksize(ATTRIBUTES, STACK_BYTES)
  let started = 0
  while (started < count) {
    if (NATIVE.pthread_create(THREAD, ATTRIBUTES, start, argument as Pointer) !== 0) break
    started += 1
  }
  return started
}

/** The largest private writable range; it is found while files can still be opened. */
const reserved = { at: 0, bytes: 0 }

function findReserved(): void {
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const [, from, to] = /^([\da-f]+)-([\da-f]+) rw.p/.exec(line) ?? []
    if (from === undefined || to === undefined) continue
    const at = Number.parseInt(from, 16)
    const bytes = Number.parseInt(to, 16) - at
    if (bytes > reserved.bytes) Object.assign(reserved, { at, bytes })
  }
}

function machine(): string {
  return process.arch === 'x64' ? 'x86_64' : 'aarch64'
}

const output = new FrameWriter()
const USAGE = [false, false, false, 0, []]

function send(...message: unknown[]): void {
  output.append(JSON.stringify(message))
  const bytes = output.take()
  for (let at = 0; at < bytes.length; ) at += writeSync(FRAMES_DESCRIPTOR, bytes, at)
}

function processFrame(text: string): void {
  const message = JSON.parse(text) as [type: string, id: number, ...unknown[]]
  const [type, id] = message
  if (type === 'load') send('loaded')
  if (type !== 'invoke') return
  const { attack, amount, idle } = message[7] as NativeAttack
  if (idle) send('returned', id, null, USAGE)
  const held = ATTACKS[attack](amount)
  // The error output, because a runner without a call in flight cannot send results.
  writeSync(2, `${attack} holds ${held}\n`)
}

if (import.meta.main) {
  const [, script = '', mode = '', landlock = '0'] = process.argv
  if (mode === '') {
    const source = resolve(import.meta.dirname, '../../src')
    const sourceTrees = [source, import.meta.dirname]
    restrictAndRestart({ arguments: [script, 'contained'], sourceTrees })
  }
  findReserved()
  new Progress()
  const containment = lockDown(Number(landlock))
  send('hello', containment, null)
  const reader = new FrameReader()
  const chunk = Buffer.alloc(65_536)
  for (;;) {
    const length = readSync(FRAMES_DESCRIPTOR, chunk, 0, chunk.length, null)
    if (length === 0) process.exit(0)
    reader.push(chunk.subarray(0, length), processFrame)
  }
}

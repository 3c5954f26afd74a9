/**
 * The server's side of a runner: starts the process, encodes and decodes its frames, and reads its
 * resource usage from the kernel. The decisions are those of engine/runners/runner-pool.ts.
 */
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FrameSocket } from './frame-sockets.ts'
import { KernelFile } from './kernel/kernel-files.ts'
import { cText, libc } from './kernel/libc.ts'
import { ProcessCounts } from './kernel/process-counts.ts'
import { PROGRESS_BYTES, type ProgressRecord, readProgress } from './kernel/progress.ts'
import { SharedProcessor } from './kernel/shared-processor.ts'
import { FRAMES_DESCRIPTOR } from './protocol/frames.ts'
import {
  type DocumentsReply,
  decodeFromRunner,
  encodeCancel,
  encodeDescribe,
  encodeDocuments,
  encodeForget,
  encodeInvoke,
  encodeLoad,
  encodeRejection,
  encodeReply,
  type FromRunner,
  type InvokeOptions,
  type InvokeRequest,
  type LoadLimits,
  type RejectedOperation,
  TRIM_FRAME,
} from './protocol/messages.ts'
import { RUNNER_ENVIRONMENT } from './sandbox/process-environment.ts'

export type { ProgressRecord } from './kernel/progress.ts'

/** Characters of one line of a runner's error output in the log. */
const LOG_LINE_CHARACTERS_MAX = 1_024
const LOG_LINES_MAX = 64

export interface RunnerEvents {
  /** `characters` is the length of the frame. */
  onMessage(message: FromRunner, characters: number): void
  /** A frame violates the protocol. The process still runs, but nothing more is read from it. */
  onMalformed(reason: string): void
  /** A line of the error output; their number is bounded, so that each can be logged. */
  onErrorOutput(line: string): void
  /** Called once, after all frames were read. */
  onExit(exit: RunnerExit): void
}

export interface RunnerExit {
  /** Null if the process exited by itself. */
  readonly signal: string | number | null
  readonly code: number | null
  /** Its peak memory; null if it is not above the memory inherited from the server. */
  readonly residentBytesMax: number | null
}

/** Resource usage of a running process; null if the kernel does not report it. */
export interface RunnerUsage {
  /** CPU microseconds of the thread that runs Functions. */
  readonly cpuMicros: number | null
  readonly residentBytes: number | null
}

export interface RunnerProcess {
  readonly pid: number
  /** Bytes that are not written yet. */
  readonly backlogBytes: number
  /** Bytes that were sent in total. */
  readonly sentBytes: number
  /** Frames that were sent or wait to be sent, in total: the runner executes a segment for each. */
  readonly sentFrames: number
  load(source: string, limits: LoadLimits): void
  describe(call: number): void
  invoke(call: number, request: InvokeRequest, options: InvokeOptions): void
  reply(call: number, operation: number, storedText: string): void
  documents(call: number, operation: number, reply: DocumentsReply): void
  forget(before: number): void
  /** Lets an idle runner collect garbage, which takes it some 30 ms. */
  trim(): void
  reject(call: number, operation: number, error: RejectedOperation): void
  cancel(call: number): void
  /** Writes the frames that the methods above have gathered. */
  flush(): void
  kill(): void
  progress(): ProgressRecord
  usage(): RunnerUsage
  /** CPU microseconds of all its threads; null if the kernel does not report them. */
  processCpuMicros(): number | null
  /**
   * Returns whether the thread that runs Functions has a CPU or waits for one; false if the kernel
   * does not report it.
   */
  isRunnable(): boolean
  /** Runs Functions on the processor that the calling thread uses now, or again on any. */
  shareProcessor(shares: boolean): void
  /** Number of its threads; 0 where the kernel does not report it. */
  threads(): number
  /** Returns whether the kernel shows every thread as contained; null if it does not report it. */
  isContained(): boolean | null
}

/** Starts a runner. Throws if the system starts no process. */
export type SpawnRunner = (events: RunnerEvents, flags: readonly string[]) => RunnerProcess

/** Returns a function that starts runners; `command` comes from runnerCommand. */
export function runnerSpawner(command: readonly string[]): SpawnRunner {
  return (events, flags) => new SpawnedRunner([...command, ...flags], events)
}

class SpawnedRunner implements RunnerProcess {
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #frames: FrameSocket
  readonly #record: number
  readonly #recordBytes = new Uint8Array(PROGRESS_BYTES)
  readonly #cpuFile: KernelFile | null
  readonly #memoryFile: KernelFile | null
  readonly #counts: ProcessCounts | null
  readonly #processor: SharedProcessor
  readonly #pageBytes = process.platform === 'linux' ? libc().getpagesize() : 0
  /** The memory of this process, which the kernel counts as the child's own after the fork. */
  readonly #inheritedBytes = process.resourceUsage().maxRSS * 1024
  #ended = false

  constructor(command: readonly string[], events: RunnerEvents) {
    this.#record = openProgressRecord()
    try {
      this.#child = start(command, this.#record)
    } catch (error) {
      closeSync(this.#record)
      throw error
    }
    const { pid } = this.#child
    this.#frames = new FrameSocket(this.#child.stdio[FRAMES_DESCRIPTOR] as number, {
      onFrame: (text) => events.onMessage(decodeFromRunner(text), text.length),
      onMalformed: events.onMalformed,
    })
    this.#cpuFile = KernelFile.open(`/proc/${pid}/task/${pid}/schedstat`)
    this.#memoryFile = KernelFile.open(`/proc/${pid}/statm`)
    this.#counts = process.platform === 'linux' ? ProcessCounts.open(pid) : null
    this.#processor = new SharedProcessor(pid)
    void this.#watch(events)
  }

  get pid(): number {
    return this.#child.pid
  }

  get backlogBytes(): number {
    return this.#frames.backlogBytes
  }

  get sentBytes(): number {
    return this.#frames.sentBytes
  }

  get sentFrames(): number {
    return this.#frames.sentFrames
  }

  load(source: string, limits: LoadLimits): void {
    this.#frames.append(encodeLoad(source, limits))
  }

  describe(call: number): void {
    this.#frames.append(encodeDescribe(call))
  }

  invoke(call: number, request: InvokeRequest, options: InvokeOptions): void {
    this.#frames.append(encodeInvoke(call, request, options))
  }

  reply(call: number, operation: number, storedText: string): void {
    this.#frames.append(encodeReply(call, operation, storedText))
  }

  documents(call: number, operation: number, reply: DocumentsReply): void {
    this.#frames.append(encodeDocuments(call, operation, reply))
  }

  forget(before: number): void {
    this.#frames.append(encodeForget(before))
  }

  trim(): void {
    this.#frames.append(TRIM_FRAME)
  }

  reject(call: number, operation: number, error: RejectedOperation): void {
    this.#frames.append(encodeRejection(call, operation, error))
  }

  cancel(call: number): void {
    this.#frames.append(encodeCancel(call))
  }

  flush(): void {
    this.#frames.flush()
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  progress(): ProgressRecord {
    if (!this.#ended) readSync(this.#record, this.#recordBytes, 0, PROGRESS_BYTES, 0)
    return readProgress(this.#recordBytes)
  }

  usage(): RunnerUsage {
    const cpuNanos = this.#cpuFile?.number(0) ?? null
    const residentPages = this.#memoryFile?.number(1) ?? null
    return {
      cpuMicros: cpuNanos === null ? null : cpuNanos / 1000,
      residentBytes: residentPages === null ? null : residentPages * this.#pageBytes,
    }
  }

  processCpuMicros(): number | null {
    return this.#counts?.cpuMicros() ?? null
  }

  isRunnable(): boolean {
    const { pid } = this.#child
    // The name of the thread, in parentheses, may contain anything.
    return kernelText(`/proc/${pid}/task/${pid}/stat`)?.includes(') R ') ?? false
  }

  shareProcessor(shares: boolean): void {
    if (!this.#ended) this.#processor.share(shares, this.threads())
  }

  threads(): number {
    return this.#counts?.threads() ?? 0
  }

  isContained(): boolean | null {
    if (process.platform !== 'linux') return null
    const tasks = `/proc/${this.pid}/task`
    return readdirSync(tasks).every((thread) => {
      const status = kernelText(`${tasks}/${thread}/status`)
      // A thread may end while the list is processed.
      return status === null || CONTAINED.every((form) => form.test(status))
    })
  }

  async #watch(events: RunnerEvents): Promise<void> {
    await Promise.all([this.#frames.closed, this.#readErrorOutput(events)])
    await this.#child.exited
    // Reads the record a last time: the call that it was executing stays readable.
    this.progress()
    this.#ended = true
    closeSync(this.#record)
    this.#cpuFile?.close()
    this.#memoryFile?.close()
    this.#counts?.close()
    const most = this.#child.resourceUsage()?.maxRSS ?? 0
    const residentBytesMax = most > this.#inheritedBytes ? most : null
    events.onExit({
      signal: this.#child.signalCode,
      code: this.#child.exitCode,
      residentBytesMax,
    })
  }

  async #readErrorOutput(events: RunnerEvents): Promise<void> {
    const decoder = new TextDecoder()
    let lines = 0
    for await (const chunk of this.#child.stderr) {
      for (const line of decoder.decode(chunk).split('\n')) {
        if (line.trim() === '' || lines >= LOG_LINES_MAX) continue
        lines += 1
        events.onErrorOutput(line.slice(0, LOG_LINE_CHARACTERS_MAX))
      }
    }
  }
}

function start(command: readonly string[], record: number) {
  return Bun.spawn([...command], {
    env: RUNNER_ENVIRONMENT,
    cwd: '/',
    // An interrupt of the terminal is for this process, which ends its runners.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', record, 'socket-fd'],
  }) as Bun.Subprocess<'ignore', 'ignore', 'pipe'>
}

/** Filtered system calls, no new privileges, no capability, and not root. */
const CONTAINED = [
  /^Seccomp:\t2$/m,
  /^NoNewPrivs:\t1$/m,
  /^CapEff:\t0+$/m,
  /^CapPrm:\t0+$/m,
  /^Uid:(?:\t[1-9]\d*){4}$/m,
]

function kernelText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

const MFD_ALLOW_SEALING = 2
const F_ADD_SEALS = 1033
const F_SEAL_SEAL_SHRINK_GROW = 1 | 2 | 4

/** Opens a file without a name that both processes share. */
function openProgressRecord(): number {
  if (process.platform === 'linux') {
    const fd = libc().memfd_create(cText('svc-runner'), MFD_ALLOW_SEALING)
    ftruncateSync(fd, PROGRESS_BYTES)
    // Sealed, since a runner that truncated its record would make the server's reads fail.
    libc().fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL_SHRINK_GROW)
    return fd
  }
  const folder = mkdtempSync(join(tmpdir(), 'svc-runner-'))
  const fd = openSync(join(folder, 'record'), 'w+', 0o600)
  rmSync(folder, { recursive: true })
  ftruncateSync(fd, PROGRESS_BYTES)
  return fd
}

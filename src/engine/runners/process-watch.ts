/**
 * Bounds what a runner's process takes as a whole, whether or not a call is in flight. Only the
 * kernel's figures count, because native code in a runner can lie about the call that it works on,
 * and can work while it has none.
 */
import type { RunnerProcess } from '../../runner/processes.ts'
import type { RunnerFate } from './outcomes.ts'

export interface ProcessLimits {
  /** Bytes that a runner may hold beyond what it held when it had loaded its Release. */
  readonly processGrowthBytes: number
  /** Threads of a runner. */
  readonly processThreads: number
  /** Milliseconds of CPU that a runner may take beyond what its calls explain. */
  readonly unexplainedCpuMillis: number
}

/** Bounds of the calls of a runner, from RunnerWatch. */
export interface CallBounds {
  /** Bytes that the runner may hold of frames which it was sent and has not processed. */
  readonly givenBytes: number
  /** Milliseconds of CPU that processing one frame may take. */
  readonly frameCpuMillis: number
}

/** Milliseconds between two looks at one runner. */
const LOOK_MILLIS = 100
/** Milliseconds of CPU beyond its bound after which a call must have been ended by RunnerWatch. */
const FRAME_MARGIN_MILLIS = 1_000
/** Share of one CPU that a runner may take for good without a call. */
const IDLE_SHARE = 0.05
/** Threads that may be as busy as the one that runs Functions: of the collector and compilers. */
const HELPERS_MAX = 8

/** One sample of the kernel's counters; CPU in microseconds. */
interface Look {
  readonly atMillis: number
  readonly isWorking: boolean
  readonly sentFrames: number
  readonly processCpu: number
  readonly functionsCpu: number
}

export class ProcessWatch {
  readonly #process: RunnerProcess
  readonly #limits: ProcessLimits
  readonly #calls: CallBounds
  #lookedAtMillis = Number.NEGATIVE_INFINITY
  #before: Look | null = null
  /** Null until it has loaded its Release. */
  #loadedBytes: number | null = null
  /** Microseconds of CPU that nothing explains, less what any runner may take. */
  #unexplainedMicros = 0
  /** The frame that is being processed, and the CPU of its thread when it was seen first. */
  #frame = { segment: 0, fromMicros: 0 }

  constructor(process: RunnerProcess, limits: ProcessLimits, calls: CallBounds) {
    this.#process = process
    this.#limits = limits
    this.#calls = calls
  }

  markLoaded(): void {
    this.#loadedBytes = this.#process.usage().residentBytes ?? 0
  }

  /**
   * Returns the fate of a runner that exceeds a bound; null while it exceeds none. `isWorking` says
   * whether the server waits for anything from it.
   */
  check(nowMillis: number, isWorking: boolean): RunnerFate | null {
    if (nowMillis - this.#lookedAtMillis < LOOK_MILLIS) return null
    this.#lookedAtMillis = nowMillis
    const processCpu = this.#process.processCpuMicros()
    // Without CPU it can have taken nothing since; most runners are idle most of the time.
    if (!isWorking && processCpu !== null && processCpu === this.#before?.processCpu) return null
    const threads = this.#process.threads()
    const { cpuMicros: functionsCpu, residentBytes } = this.#process.usage()
    const grownBytes = (residentBytes ?? 0) - (this.#loadedBytes ?? 0) - this.#calls.givenBytes
    if (grownBytes > this.#limits.processGrowthBytes) return { kind: 'limit', limit: 'memory' }
    if (threads > this.#limits.processThreads) {
      return { kind: 'broken', detail: `the runner has ${threads} threads` }
    }
    // The start takes what it takes; RunnerStart bounds how long.
    const isLoaded = this.#loadedBytes !== null
    if (!isLoaded || processCpu === null || functionsCpu === null) return null
    const { sentFrames } = this.#process
    const look = { atMillis: nowMillis, isWorking, sentFrames, processCpu, functionsCpu }
    const fate = this.#before === null ? null : this.#checkCpu(this.#before, look)
    this.#before = look
    return fate
  }

  #checkCpu(before: Look, look: Look): RunnerFate | null {
    const { segment } = this.#process.progress()
    // Counts of 32 bits, which wrap around.
    if (((segment - look.sentFrames) | 0) > 0) {
      return { kind: 'broken', detail: 'the runner claims frames that it was not sent' }
    }
    if (segment !== this.#frame.segment) {
      this.#frame = { segment, fromMicros: before.functionsCpu }
    }
    const wasWorking = before.isWorking || look.isWorking || look.sentFrames !== before.sentFrames
    const functionsMicros = look.functionsCpu - before.functionsCpu
    const explained = wasWorking ? functionsMicros * (1 + HELPERS_MAX) : 0
    const allowed = (look.atMillis - before.atMillis) * 1000 * IDLE_SHARE
    const unexplained = look.processCpu - before.processCpu - explained - allowed
    this.#unexplainedMicros = Math.max(0, this.#unexplainedMicros + unexplained)
    const frameMicrosMax = (this.#calls.frameCpuMillis + FRAME_MARGIN_MILLIS) * 1000
    const isTooMuch =
      this.#unexplainedMicros > this.#limits.unexplainedCpuMillis * 1000 ||
      look.functionsCpu - this.#frame.fromMicros > frameMicrosMax
    return isTooMuch ? { kind: 'limit', limit: 'cpu' } : null
  }
}

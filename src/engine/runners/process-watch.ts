/**
 * Bounds the resources of a runner's process as a whole, with or without a call in flight. It uses
 * only the kernel's figures, since native code in a runner can report a false call, and can run
 * without one.
 */
import type { RunnerProcess } from '../../runner/processes.ts'
import type { RunnerFate } from '../calls/outcomes.ts'

export interface ProcessLimits {
  /** Growth of a runner in bytes since it loaded its Release. */
  readonly processGrowthBytes: number
  /** Threads of a runner. */
  readonly processThreads: number
  /** Milliseconds of CPU that a runner may use beyond the CPU time of its calls. */
  readonly unexplainedCpuMillis: number
}

/** Bounds of the calls of a runner, from RunnerWatch. */
export interface CallBounds {
  /** Bytes that the runner may hold of frames which it was sent and has not processed. */
  readonly givenBytes: number
  /** Milliseconds of CPU that processing one frame may take. */
  readonly frameCpuMillis: number
}

/** Milliseconds between two samples of a runner. */
const SAMPLE_MILLIS = 100
/** CPU milliseconds over its limit within which RunnerWatch must have ended a call. */
const FRAME_MARGIN_MILLIS = 1_000
/** Share of one CPU that a runner may use permanently without a call. */
const IDLE_SHARE = 0.05
/** Threads of the collector and compilers, which may be as busy as the one of Functions. */
const HELPERS_MAX = 8

/** One sample of the kernel's counters; CPU in microseconds. */
interface Sample {
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
  #sampledAtMillis = Number.NEGATIVE_INFINITY
  #before: Sample | null = null
  /** Null until it has loaded its Release. */
  #loadedBytes: number | null = null
  /** CPU microseconds not explained by calls, less the permitted share. */
  #unexplainedMicros = 0
  /** The frame that is being processed, and the CPU of its thread at its first sample. */
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
   * Returns the fate of a runner that exceeds a bound; null while it exceeds none. `isWorking`:
   * whether the server waits for a message of it.
   */
  check(nowMillis: number, isWorking: boolean): RunnerFate | null {
    if (nowMillis - this.#sampledAtMillis < SAMPLE_MILLIS) return null
    this.#sampledAtMillis = nowMillis
    const processCpu = this.#process.processCpuMicros()
    // Without CPU time its figures cannot have changed; most runners are idle mostly.
    if (!isWorking && processCpu !== null && processCpu === this.#before?.processCpu) return null
    const threads = this.#process.threads()
    const { cpuMicros: functionsCpu, residentBytes } = this.#process.usage()
    const grownBytes = (residentBytes ?? 0) - (this.#loadedBytes ?? 0) - this.#calls.givenBytes
    if (grownBytes > this.#limits.processGrowthBytes) return { kind: 'limit', limit: 'memory' }
    if (threads > this.#limits.processThreads) {
      return { kind: 'broken', detail: `the runner has ${threads} threads` }
    }
    // The start has no CPU limit; RunnerStart bounds its duration.
    const isLoaded = this.#loadedBytes !== null
    if (!isLoaded || processCpu === null || functionsCpu === null) return null
    const { sentFrames } = this.#process
    const sample = { atMillis: nowMillis, isWorking, sentFrames, processCpu, functionsCpu }
    const fate = this.#before === null ? null : this.#checkCpu(this.#before, sample)
    this.#before = sample
    return fate
  }

  #checkCpu(before: Sample, sample: Sample): RunnerFate | null {
    const { segment } = this.#process.progress()
    // Counts of 32 bits, which wrap around.
    if (((segment - sample.sentFrames) | 0) > 0) {
      return { kind: 'broken', detail: 'the runner claims frames that it was not sent' }
    }
    if (segment !== this.#frame.segment) {
      this.#frame = { segment, fromMicros: before.functionsCpu }
    }
    const wasWorking =
      before.isWorking || sample.isWorking || sample.sentFrames !== before.sentFrames
    const functionsMicros = sample.functionsCpu - before.functionsCpu
    const explained = wasWorking ? functionsMicros * (1 + HELPERS_MAX) : 0
    const allowed = (sample.atMillis - before.atMillis) * 1000 * IDLE_SHARE
    const unexplained = sample.processCpu - before.processCpu - explained - allowed
    this.#unexplainedMicros = Math.max(0, this.#unexplainedMicros + unexplained)
    const frameMicrosMax = (this.#calls.frameCpuMillis + FRAME_MARGIN_MILLIS) * 1000
    const isTooMuch =
      this.#unexplainedMicros > this.#limits.unexplainedCpuMillis * 1000 ||
      sample.functionsCpu - this.#frame.fromMicros > frameMicrosMax
    return isTooMuch ? { kind: 'limit', limit: 'cpu' } : null
  }
}

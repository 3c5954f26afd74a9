/**
 * Checks the limits of a runner with the kernel's figures: which call keeps it busy, its CPU time,
 * and its memory growth. CPU time is used where the kernel reports it, so that a call on a starved
 * machine is not terminated; otherwise the elapsed time.
 */
import type { RunnerProcess, RunnerUsage } from '../../runner/processes.ts'
import { LOADING } from '../../runner/protocol/messages.ts'
import type { RunnerFate, RunnerHost } from '../calls/outcomes.ts'
import { type ProcessLimits, ProcessWatch } from './process-watch.ts'

export interface WatchLimits extends ProcessLimits {
  /** Milliseconds of CPU that one call may take. */
  readonly callCpuMillis: number
  /** Milliseconds of CPU that loading a Release may take. */
  readonly loadCpuMillis: number
  /** Bytes that one segment of a call may add to the runner's memory. */
  readonly callGrowthBytes: number
  /** Bytes that a runner may add to what it held when it had loaded its Release. */
  readonly runnerGrowthBytes: number
}

/** A limit that a call exceeded. */
export interface LimitExcess {
  /** The responsible call; LOADING while the Release loads. */
  readonly call: number
  readonly limit: 'cpu' | 'memory'
}

interface Segment {
  readonly call: number
  readonly segment: number
  /** Bytes that it may grow by, with the segments that began and ended before its first sample. */
  readonly growthBytesMax: number
  readonly usage: RunnerUsage
  readonly atMillis: number
  /** Resident bytes of the runner before the first sample of the segment. */
  readonly heldBytes: number
  /** Bytes of the frames that the runner had processed before. */
  readonly processedBytes: number
}

/** Milliseconds without CPU time in which a runner with unprocessed frames counts as stopped. */
const STOPPED_MILLIS = 3_000

/** A runner may hold a reply as bytes, as text, as values, and as the body made of them. */
const BYTES_HELD_FOR_ONE_SENT = 4

export class RunnerWatch {
  /** Milliseconds of CPU that one call of the loaded code may take. */
  callCpuMillis: number
  /** The last reported usage. The kernel reports none for a process that has ended. */
  usage: RunnerUsage
  readonly #process: RunnerProcess
  readonly #limits: WatchLimits
  readonly #whole: ProcessWatch
  #seen: Segment | null = null
  /** Number of the segment at the last sample. */
  #lastSegment = 0
  #heldBytes = 0
  /** Most resident bytes of any sample. */
  #mostBytes = 0
  /** Total bytes of the frames that the runner has processed. */
  #processedBytes = 0
  /** Frames and bytes that were sent at an earlier sample, until they are processed. */
  #mark = { frames: 0, bytes: 0 }
  #loadedBytes: number | null = null
  #lastSample: { readonly cpuMicros: number; readonly atMillis: number } | null = null
  #cpuShare = 0
  /** The runner since it processed a frame, used CPU time or was given its first frame. */
  #paused: {
    readonly segments: number
    readonly cpuMicros: number
    readonly atMillis: number
  } | null = null

  constructor(process: RunnerProcess, limits: WatchLimits) {
    this.#process = process
    this.#limits = limits
    this.#whole = new ProcessWatch(process, limits, this)
    this.callCpuMillis = limits.callCpuMillis
    this.usage = process.usage()
    this.#heldBytes = this.usage.residentBytes ?? 0
  }

  /** Returns whether the runner executed a call at the last sample. */
  get isBusy(): boolean {
    return this.#seen !== null
  }

  /** Share of one CPU between the last two samples; 0 where the kernel reports nothing. */
  get cpuShare(): number {
    return this.#cpuShare
  }

  /** Growth in bytes since the Release was loaded; 0 where the kernel reports nothing. */
  get grownBytes(): number {
    return this.#loadedBytes === null ? 0 : Math.max(0, this.#heldBytes - this.#loadedBytes)
  }

  /** Bytes that the runner may hold of frames that it has not processed. */
  get givenBytes(): number {
    return givenBytes(this.#process, this.#processedBytes)
  }

  /** Milliseconds of CPU that processing one frame may take. */
  get frameCpuMillis(): number {
    return Math.max(this.callCpuMillis, this.#limits.loadCpuMillis)
  }

  /** Records the memory growth of the executing call in its host. */
  noteGrowth(calls: {
    get(id: number): { readonly root: number; readonly host: RunnerHost } | undefined
  }) {
    const seen = this.#seen
    const host = seen && calls.get(calls.get(seen.call)?.root ?? 0)?.host
    if (host) host.grownBytes = Math.max(host.grownBytes ?? 0, this.#grownSince(seen))
  }

  /** Reads the usage of the process from the kernel. */
  sampleUsage(): RunnerUsage {
    const usage = this.#process.usage()
    if (usage.cpuMicros !== null) this.usage = usage
    return usage
  }

  /** Returns the call that is executing; 0 for none. */
  current(): number {
    return this.#process.progress().call
  }

  markLoaded(): void {
    this.#loadedBytes = this.#process.usage().residentBytes
    this.#mark = { frames: this.#process.sentFrames, bytes: this.#process.sentBytes }
    this.#processedBytes = this.#mark.bytes
    this.#heldBytes = this.#loadedBytes ?? 0
    this.#lastSegment = this.#process.progress().segment
    this.#whole.markLoaded()
  }

  /**
   * Returns the fate of a process that exceeds a limit of whole processes, or null. Kills a process
   * that something outside has stopped: as after any kill from outside, its calls run again.
   */
  checkProcess(nowMillis: number, isWorking: boolean): RunnerFate | null {
    if (isWorking && this.#isStopped(nowMillis)) this.#process.kill()
    return this.#whole.check(nowMillis, isWorking)
  }

  /** Returns the limit that a call exceeds, or null. Called some 40 times a second. */
  checkLimits(nowMillis: number): LimitExcess | null {
    const { call, segment, spentMicros } = this.#process.progress()
    const usage = this.sampleUsage()
    const before = { heldBytes: this.#heldBytes, processedBytes: this.#processedBytes }
    this.#heldBytes = usage.residentBytes ?? 0
    this.#mostBytes = Math.max(this.#mostBytes, this.#heldBytes)
    this.#noteProcessed(call === 0 ? segment : segment - 1)
    this.#measureShare(usage, nowMillis)
    const growthBytesMax = this.#limits.callGrowthBytes * this.#newSegments(segment)
    this.#lastSegment = segment
    if (call === 0) {
      this.#seen = null
      return null
    }
    const known = this.#seen?.call === call && this.#seen.segment === segment ? this.#seen : null
    const seen = known ?? { call, segment, growthBytesMax, usage, atMillis: nowMillis, ...before }
    this.#seen = seen
    if (this.#isTooLarge(seen)) return { call, limit: 'memory' }
    // The runner itself writes this figure, so it may only increase the kernel's.
    const earlier = spentMicros > 0 ? spentMicros : 0
    const millis = (earlier + elapsedMicros(seen, usage, nowMillis)) / 1000
    const millisMax = call === LOADING ? this.#limits.loadCpuMillis : this.callCpuMillis
    return millis > millisMax ? { call, limit: 'cpu' } : null
  }

  /**
   * Returns whether a runner that ended unexpectedly exceeded its memory limit since the last
   * sample. `mostBytes` is its maximum. Growth before the last sample was within the limits.
   */
  diedOfMemory(mostBytes: number | null): boolean {
    if (mostBytes === null || mostBytes <= this.#mostBytes) return false
    const from = this.#seen?.heldBytes ?? this.#heldBytes
    return mostBytes - from > this.#limits.callGrowthBytes
  }

  /**
   * Records how many sent bytes the runner has processed. Sent frames grow the runner some samples
   * before or after it processes them, and only processed frames are no longer expected to.
   * `segments` wraps around with 32 bits.
   */
  #noteProcessed(segments: number): void {
    if (((segments - this.#mark.frames) | 0) < 0) return
    this.#processedBytes = this.#mark.bytes
    this.#mark = { frames: this.#process.sentFrames, bytes: this.#process.sentBytes }
  }

  /**
   * Returns the number of segments that may have grown the runner since the last sample. On a busy
   * machine samples are late, and the growth of many calls must not be held against the last one.
   */
  #newSegments(segment: number): number {
    const begun = (segment - this.#lastSegment) | 0
    const wasExecuting = begun > 0 && this.#seen !== null
    return Math.max(1, begun + (wasExecuting ? 1 : 0))
  }

  #measureShare({ cpuMicros }: RunnerUsage, atMillis: number): void {
    const before = this.#lastSample
    this.#lastSample = cpuMicros === null ? null : { cpuMicros, atMillis }
    if (cpuMicros === null || before === null || atMillis <= before.atMillis) this.#cpuShare = 0
    else this.#cpuShare = (cpuMicros - before.cpuMicros) / 1000 / (atMillis - before.atMillis)
  }

  #isTooLarge(seen: Segment): boolean {
    const { runnerGrowthBytes } = this.#limits
    const grown = this.#grownSince(seen)
    if (seen.call === LOADING) return grown > runnerGrowthBytes
    return (
      grown > seen.growthBytesMax ||
      this.grownBytes - givenBytes(this.#process, seen.processedBytes) > runnerGrowthBytes
    )
  }

  /**
   * Returns whether the process has frames to process, has used no CPU time for a while and waits
   * for no CPU: it was stopped, or the kernel blocks it. Always false if the kernel reports no
   * CPU time.
   */
  #isStopped(nowMillis: number): boolean {
    const { call, segment } = this.#process.progress()
    const { cpuMicros } = this.#process.usage()
    const segments = call === 0 ? segment : segment - 1
    const isIdle = ((segments - this.#process.sentFrames) | 0) >= 0
    if (cpuMicros === null || isIdle) {
      this.#paused = null
      return false
    }
    const { segments: before, cpuMicros: cpuBefore, atMillis } = this.#paused ?? {}
    if (atMillis !== undefined && before === segments && cpuBefore === cpuMicros) {
      return nowMillis - atMillis > STOPPED_MILLIS && !this.#process.isRunnable()
    }
    this.#paused = { segments, cpuMicros, atMillis: nowMillis }
    return false
  }

  /** Growth in bytes since the first sample of the segment, without received frames. */
  #grownSince(seen: Segment): number {
    return this.#heldBytes - seen.heldBytes - givenBytes(this.#process, seen.processedBytes)
  }
}

function givenBytes({ sentBytes }: RunnerProcess, processedBytes: number): number {
  return BYTES_HELD_FOR_ONE_SENT * (sentBytes - processedBytes)
}

function elapsedMicros(seen: Segment, usage: RunnerUsage, nowMillis: number): number {
  if (usage.cpuMicros === null || seen.usage.cpuMicros === null) {
    return (nowMillis - seen.atMillis) * 1000
  }
  return usage.cpuMicros - seen.usage.cpuMicros
}

/**
 * Judges what a runner does by what the kernel says of it: which call keeps it busy, for how much
 * CPU, and how its memory grew. A call is judged by time of the CPU, so that a starved machine does
 * not kill the innocent; where the kernel says nothing, by time that passed.
 */
import { LOADING } from '../../runner/messages.ts'
import type { RunnerProcess, RunnerUsage } from '../../runner/processes.ts'
import type { RunnerFate, RunnerHost } from './outcomes.ts'
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

export interface LimitVerdict {
  /** The responsible call; LOADING while the Release loads. */
  readonly call: number
  readonly limit: 'cpu' | 'memory'
}

interface Segment {
  readonly call: number
  readonly segment: number
  readonly usage: RunnerUsage
  readonly atMillis: number
  /** Resident bytes of the runner before the segment was seen. */
  readonly heldBytes: number
  /** Bytes of the frames that it had processed before. */
  readonly processedBytes: number
}

/** A reply is held as bytes, as text, as the values in it and as what they stand for: a body. */
const BYTES_HELD_FOR_ONE_SENT = 4

export class RunnerWatch {
  /** Milliseconds of CPU that one call of the loaded code may take. */
  callCpuMillis: number
  /** The last usage that the kernel reported; it reports nothing of a process that has ended. */
  usage: RunnerUsage
  readonly #process: RunnerProcess
  readonly #limits: WatchLimits
  readonly #whole: ProcessWatch
  #seen: Segment | null = null
  #heldBytes = 0
  /** The most that any look saw. */
  #mostBytes = 0
  /** Bytes of frames that it has worked, all of them. */
  #processedBytes = 0
  /** Frames of an earlier look, and the bytes that were sent by then: the next to be worked. */
  #mark = { frames: 0, bytes: 0 }
  #loadedBytes: number | null = null
  #looked: { readonly cpuMicros: number; readonly atMillis: number } | null = null
  #cpuShare = 0

  constructor(process: RunnerProcess, limits: WatchLimits) {
    this.#process = process
    this.#limits = limits
    this.#whole = new ProcessWatch(process, limits, this)
    this.callCpuMillis = limits.callCpuMillis
    this.usage = process.usage()
    this.#heldBytes = this.usage.residentBytes ?? 0
  }

  /** Whether a call was still at the segment that an earlier look saw it at. */
  get isBusy(): boolean {
    return this.#seen !== null
  }

  /** Share of one CPU between the last two samples; 0 where the kernel reports nothing. */
  get cpuShare(): number {
    return this.#cpuShare
  }

  /** Bytes above what it held when it had loaded; 0 where the kernel says nothing. */
  get grownBytes(): number {
    return this.#loadedBytes === null ? 0 : Math.max(0, this.#heldBytes - this.#loadedBytes)
  }

  /** Bytes that it may hold of frames which it was sent and has not processed. */
  get givenBytes(): number {
    return givenBytes(this.#process, this.#processedBytes)
  }

  /** Milliseconds of CPU that processing one frame may take. */
  get frameCpuMillis(): number {
    return Math.max(this.callCpuMillis, this.#limits.loadCpuMillis)
  }

  /** Tells the host of the call that keeps it busy what that was seen to add to its memory. */
  noteGrowth(calls: {
    get(id: number): { readonly root: number; readonly host: RunnerHost } | undefined
  }) {
    const seen = this.#seen
    const host = seen && calls.get(calls.get(seen.call)?.root ?? 0)?.host
    if (host) host.grownBytes = Math.max(host.grownBytes ?? 0, this.#grownSince(seen))
  }

  /** Asks the kernel what the process used so far and holds. */
  look(): RunnerUsage {
    const usage = this.#process.usage()
    if (usage.cpuMicros !== null) this.usage = usage
    return usage
  }

  /** The call that the record names now; 0 for none. */
  current(): number {
    return this.#process.progress().call
  }

  markLoaded(): void {
    this.#loadedBytes = this.#process.usage().residentBytes
    this.#mark = { frames: this.#process.sentFrames, bytes: this.#process.sentBytes }
    this.#processedBytes = this.#mark.bytes
    this.#heldBytes = this.#loadedBytes ?? 0
    this.#whole.markLoaded()
  }

  /** Returns the fate of a process that exceeds a bound as a whole; null while it exceeds none. */
  checkProcess(nowMillis: number, isWorking: boolean): RunnerFate | null {
    return this.#whole.check(nowMillis, isWorking)
  }

  /** Null while nothing is wrong. Called some 40 times a second while the runner works. */
  judge(nowMillis: number): LimitVerdict | null {
    const { call, segment, spentMicros } = this.#process.progress()
    const usage = this.look()
    const before = { heldBytes: this.#heldBytes, processedBytes: this.#processedBytes }
    this.#heldBytes = usage.residentBytes ?? 0
    this.#mostBytes = Math.max(this.#mostBytes, this.#heldBytes)
    this.#noteProcessed(call === 0 ? segment : segment - 1)
    this.#measureShare(usage, nowMillis)
    if (call === 0) {
      this.#seen = null
      return null
    }
    const known = this.#seen?.call === call && this.#seen.segment === segment ? this.#seen : null
    const seen = known ?? { call, segment, usage, atMillis: nowMillis, ...before }
    this.#seen = seen
    if (this.#isTooLarge(seen)) return { call, limit: 'memory' }
    // The record is the runner's own word: it can only add to what the kernel says.
    const earlier = spentMicros > 0 ? spentMicros : 0
    const millis = (earlier + elapsedMicros(seen, usage, nowMillis)) / 1000
    const millisMax = call === LOADING ? this.#limits.loadCpuMillis : this.callCpuMillis
    return millis > millisMax ? { call, limit: 'cpu' } : null
  }

  /**
   * Whether a runner that ended by itself grew too much since the last look; `mostBytes` is what it
   * ever held. What it grew by before was looked at, and is no call's fault.
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

  #measureShare({ cpuMicros }: RunnerUsage, atMillis: number): void {
    const before = this.#looked
    this.#looked = cpuMicros === null ? null : { cpuMicros, atMillis }
    if (cpuMicros === null || before === null || atMillis <= before.atMillis) this.#cpuShare = 0
    else this.#cpuShare = (cpuMicros - before.cpuMicros) / 1000 / (atMillis - before.atMillis)
  }

  #isTooLarge(seen: Segment): boolean {
    const { callGrowthBytes, runnerGrowthBytes } = this.#limits
    const grown = this.#grownSince(seen)
    if (seen.call === LOADING) return grown > runnerGrowthBytes
    return (
      grown > callGrowthBytes ||
      this.grownBytes - givenBytes(this.#process, seen.processedBytes) > runnerGrowthBytes
    )
  }

  /** Bytes since the segment was seen, beyond what the runner had to take. */
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

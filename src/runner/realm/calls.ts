/**
 * The calls that are in flight in this realm; each has its own `ctx`, clock, randomness and log.
 * One frame of the server is processed at a time, with everything that follows from it. That is
 * usually the call of the frame; if calls share a promise in module scope, others continue in its
 * frame as well.
 */
import type { FunctionalIdentity } from '../../value/identities.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { bridge } from './bridge.ts'
import type { DeliveredDocuments } from './documents.ts'
import type { LogSink } from './logging.ts'
import type { RandomStream } from './random-stream.ts'
import type { DefinedFunction } from './workspace.ts'

export interface Call extends LogSink {
  readonly id: number
  readonly definition: DefinedFunction
  readonly nowMicros: string
  readonly seed: string
  /** Null until the call uses randomness. */
  random: RandomStream | null
  usedClock: boolean
  usedRandom: boolean
  /** Null for an anonymous caller. */
  readonly identity: FunctionalIdentity | null
  usedIdentity: boolean
  /** CPU microseconds, up to its last segment. */
  spentMicros: number
  finished: boolean
  /** The call that its CPU time is charged to, if it is part of another one. */
  readonly root: Call | null
  /** Count of operations that were sent for a reply. */
  requests: number
  /** Count of requests without a reply. */
  openRequests: number
  /** Count of results that the Function must wait for before it ends. */
  owedResults: number
  /** Timers of an Action, by ID. */
  readonly timers: Map<number, Timer>
  /** Number of the timers that belong to AbortSignal.timeout. */
  timeouts: number
  /** Times at which the server wakes the call, in epoch milliseconds; the next one is last. */
  readonly wakeTimes: number[]
  readonly delivered: DeliveredDocuments
  /** Promises of writes that no code observed, with an error made at the location of each. */
  readonly unobservedWrites: Map<object, Error | null>
  /** Rejected promises that no code handled, with their reports; null until there is one. */
  unhandledRejections: Map<object, string> | null
  /** Continues before its operations are processed, and records no locations (speculation). */
  readonly isSpeculative: boolean
  /** Documents that came with the call, by ID, while the server would still reply with them. */
  readonly prefetched: Map<string, object>
  /** Pages that came with the call, by the texts of their operations, for as long. */
  readonly prefetchedPages: Map<string, object>
  /** Count of documents that it inserted; null once a call of its transaction may have too. */
  inserts: number | null
  /** Pipelined operations that are not sent yet, with commas between them. */
  pipelined: string
  /** Count of pipelined operations since the last request. */
  pipelinedInRow: number
  /** Results of pipelined operations that are not delivered to the code yet. */
  readonly pipelinedResults: PipelinedResult[]
  /** True if its handler has ended. */
  handlerEnded: boolean
}

/** Delivered one at a time, as replies are: the code interleaves as it does synchronously. */
interface PipelinedResult {
  /** Number of preceding requests, whose replies are delivered first. */
  readonly precedingRequests: number
  readonly resolve: (result: unknown) => void
  readonly result: unknown
}

export interface Timer {
  /** Milliseconds since the epoch. */
  dueAt: number
  /** Milliseconds; null for a timer that runs once. */
  readonly every: number | null
  readonly run: () => void
}

/** A request that waits for its reply. */
export interface PendingRequest {
  readonly call: Call
  /** True if the Function must wait for the reply. */
  readonly isOwed: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** Created at the operation for its stack; null if no location is recorded. */
  readonly error: Error | null
}

export const activeCalls = new TransientMap<number, Call>()
export const pendingRequests = new TransientMap<number, PendingRequest>()

/** The frame that is processed. */
interface CurrentFrame {
  /** The call that the frame is for. */
  call: Call | null
  /** Calls other than `call` whose code was seen to run: they sent, pipelined or ended. */
  readonly otherActiveCalls: Call[]
  /** Ends of calls whose handler has ended, run when everything that it left running has run. */
  readonly ends: (() => void)[]
}

export const frame: CurrentFrame = { call: null, otherActiveCalls: [], ends: [] }

/** Records that the code of a call runs. */
export function noteRunning(call: Call): void {
  if (call === frame.call) return
  // Not by a method: the code may have changed those of arrays, which are not restored yet.
  frame.otherActiveCalls[frame.otherActiveCalls.length] = call
}

/** The call whose code runs; null while the script loads. */
export function runningCall(): Call | null {
  // Code that waits since the script loaded is part of no call.
  return (bridge.callOfRunningCode() as Call | undefined) ?? frame.call
}

/** CPU microseconds that are charged to the root of a call, up to its last segment. */
export function chargedMicros(id: number): number {
  const call = activeCalls.get(id)
  return (call?.root ?? call)?.spentMicros ?? 0
}

type Given = 'id' | 'definition' | 'nowMicros' | 'seed' | 'identity' | 'root' | 'isSpeculative'

/** Creates the state of a new call. */
export function newCall(given: Pick<Call, Given>): Call {
  return {
    id: given.id,
    definition: given.definition,
    nowMicros: given.nowMicros,
    seed: given.seed,
    random: null,
    usedClock: false,
    usedRandom: false,
    identity: given.identity,
    usedIdentity: false,
    spentMicros: 0,
    finished: false,
    root: given.root,
    requests: 0,
    openRequests: 0,
    owedResults: 0,
    timers: new Map(),
    timeouts: 0,
    wakeTimes: [],
    delivered: { count: 0, copies: new Map() },
    unobservedWrites: new Map(),
    unhandledRejections: null,
    isSpeculative: given.isSpeculative,
    prefetched: new Map(),
    prefetchedPages: new Map(),
    inserts: 0,
    pipelined: '',
    pipelinedInRow: 0,
    pipelinedResults: [],
    handlerEnded: false,
    lines: '',
    lineCount: 0,
  }
}

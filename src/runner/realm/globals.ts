/** The globals that a Workspace's code sees, put together. */
import type { Bridge } from './bridge.ts'
import type { Call, Calls, makeEndings, makeOperations } from './calls.ts'
import type { makeWriteLog } from './logging.ts'
import type { Bounds, Parts } from './realm.ts'
import type { makeReport } from './reports.ts'

/** Microseconds of the clock that a call may see; an Action sees the one of the world. */
export function makeClock(bridge: Bridge, actions: boolean): (call: Call) => bigint {
  if (actions) return () => BigInt(Math.floor(bridge.nowMicros()))
  return (call) => {
    call.usedClock = true
    return BigInt(call.nowMicros)
  }
}

export function makeGlobals(
  parts: Parts,
  bridge: Bridge,
  own: {
    readonly calls: Calls
    readonly operations: ReturnType<typeof makeOperations>
    readonly endings: ReturnType<typeof makeEndings>
    readonly report: ReturnType<typeof makeReport>
    readonly write: ReturnType<typeof makeWriteLog>
    readonly clock: ReturnType<typeof makeClock>
  },
  bounds: Bounds,
): void {
  const { calls, operations, clock } = own
  // While the code loads there is no invocation: its time is the epoch, its seed zero.
  const atLoad = parts.makeRandomStream('0'.repeat(64))

  function now(): number {
    const call = calls.running()
    return call === null ? 0 : Number(clock(call) / 1000n)
  }

  function stream() {
    const call = calls.running()
    if (call === null) return atLoad
    call.usedRandom = true
    call.stream ??= parts.makeRandomStream(call.seed)
    return call.stream
  }

  const pairs = new WeakMap()
  const form = parts.makeForm(bridge)
  const PairsReader = parts.makePairsReader(pairs, form.serialize)
  const URLSearchParams = parts.makeSearchParams(pairs, PairsReader, form.pairsOf)
  const URL = parts.makeUrl(bridge, bounds.urlParts, pairs, URLSearchParams)
  const text = parts.makeText(bridge)
  const { timersMax } = bounds
  const alarm = parts.makeAlarm(operations, { ...own, now })
  const timers = bounds.actions ? parts.makeTimers(calls, alarm, { now, timersMax }) : null
  const listeners = parts.makeAbortListeners()
  const DOMException = parts.makeDomException()
  const aborts = parts.makeAborts(listeners, DOMException, timers?.after ?? null)
  const Headers = parts.makeHeaders(parts.makeHeaderValues())
  const Body = parts.makeBody(parts.makeBodyReader(text, URLSearchParams), text)
  const Request = parts.makeRequest(Body, Headers, URL)
  const received = Symbol('received')
  const Response = parts.makeResponse(Body, Headers, received)
  const exchange = { Body, Request, Response, received, bounds }
  parts.makeFixedFormats(now)
  parts.makeFixedTemporal(now)
  parts.makeEnvironment(parts.makeDate(now), parts.makeRandom(stream), {
    ...text,
    AbortController: parts.makeAbortController(aborts),
    AbortSignal: aborts.AbortSignal,
    ...timers?.globals,
    ...(bounds.actions && { fetch: parts.makeFetch(calls, operations, exchange) }),
    DOMException,
    Headers,
    Request,
    Response,
    URL,
    URLSearchParams,
    structuredClone: parts.makeStructuredClone(),
    // The time of a Query or a Mutation stands still, and so looking at it tells nothing.
    console: parts.makeConsole(calls.running, own.write, bounds.actions ? now : () => 0),
  })
}

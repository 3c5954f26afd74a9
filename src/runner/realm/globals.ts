/** The globals that a Workspace's code sees, put together. */
import type { Bridge } from './bridge.ts'
import type { Calls } from './calls.ts'
import type { makeWriteLog } from './logging.ts'
import type { Bounds, Parts } from './realm.ts'

export function makeGlobals(
  parts: Parts,
  bridge: Bridge,
  calls: Calls,
  write: ReturnType<typeof makeWriteLog>,
  bounds: Bounds,
): void {
  // While the code loads there is no invocation: its time is the epoch, its seed zero.
  const atLoad = parts.makeRandomStream('0'.repeat(64))

  function now(): number {
    const { current } = calls
    if (current === null) return 0
    current.usedClock = true
    return Math.floor(Number(current.nowMicros) / 1000)
  }

  function stream() {
    const { current } = calls
    if (current === null) return atLoad
    current.usedRandom = true
    current.stream ??= parts.makeRandomStream(current.seed)
    return current.stream
  }

  const pairs = new WeakMap()
  const form = parts.makeForm(bridge)
  const PairsReader = parts.makePairsReader(pairs, form.serialize)
  const URLSearchParams = parts.makeSearchParams(pairs, PairsReader, form.pairsOf)
  parts.makeFixedFormats(now)
  parts.makeFixedTemporal(now)
  parts.makeEnvironment(parts.makeDate(now), parts.makeRandom(stream), {
    ...parts.makeText(bridge),
    URL: parts.makeUrl(bridge, bounds.urlParts, pairs, URLSearchParams),
    URLSearchParams,
    structuredClone: parts.makeStructuredClone(),
    console: parts.makeConsole(() => calls.current, write),
  })
}

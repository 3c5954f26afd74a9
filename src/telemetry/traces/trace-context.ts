/** The headers `traceparent` and `tracestate` of W3C Trace Context (w3.org/TR/trace-context-2). */

/** A span of another program, by which it and its callees find each other. */
export interface TraceContext {
  /** 32 lower case hexadecimal digits, not all 0. */
  readonly traceId: string
  /** 16 lower case hexadecimal digits, not all 0. */
  readonly spanId: string
  readonly isSampled: boolean
  /** The header `tracestate`, which is passed on; null without a valid one. */
  readonly state: string | null
}

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-+\--~]{0,400})?$/
const SAMPLED = 1

/**
 * Characters and members of a `tracestate` that is passed on; a longer one is dropped. W3C Trace
 * Context, section 3.3.1, asks that at least 512 characters are passed on, and allows 32 members.
 */
const STATE_CHARACTERS_MAX = 512
const MEMBERS_MAX = 32
const KEY = '[a-z0-9][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}'
const MEMBER = new RegExp(`^(${KEY})=[ -+\\--<>-~]{0,255}[!-+\\--<>-~]$`)

/** Returns null if `traceparent` is absent or malformed; a malformed `tracestate` is dropped. */
export function parseTraceContext(
  parent: string | null,
  state: string | null,
): TraceContext | null {
  const match = parent === null ? null : PARENT.exec(parent)
  if (match === null) return null
  const [, version, traceId, spanId, flags, rest] = match
  // Later versions may append fields; version ff does not exist.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return null
  const isSampled = (Number.parseInt(flags!, 16) & SAMPLED) === SAMPLED
  return { traceId: traceId!, spanId: spanId!, isSampled, state: parseState(state) }
}

/** Returns the text of `traceparent`. */
export function traceParent({ traceId, spanId, isSampled }: Omit<TraceContext, 'state'>): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

function parseState(text: string | null): string | null {
  if (text === null || text.length > STATE_CHARACTERS_MAX) return null
  const members = text
    .split(',')
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((member) => member !== '')
  if (members.length === 0 || members.length > MEMBERS_MAX) return null
  const keys = members.map((member) => MEMBER.exec(member)?.[1])
  if (keys.includes(undefined) || new Set(keys).size < keys.length) return null
  return members.join(',')
}

/** The records of one request as steps in time, those of each invocation together. */
import type { LogRecord } from '../../wire/logs.ts'

export interface Step {
  readonly key: string
  /** A Function, or the event of a record. */
  readonly name: string
  readonly message: string
  readonly level: LogRecord['level']
  /** Microseconds since the begin of the first step. */
  readonly beginsMicros: number
  /** Null for a record of one moment. */
  readonly takesMicros: number | null
  /** True for the records of an invocation, below the step that spans them. */
  readonly isInside: boolean
}

export interface RequestSteps {
  readonly steps: readonly Step[]
  readonly totalMicros: number
  /** The traces that the server exports, by their IDs. */
  readonly traceIds: readonly string[]
}

/** The time of a record; its duration ends there. */
interface Timed {
  readonly record: LogRecord
  readonly begin: bigint
  readonly end: bigint
}

export function requestSteps(records: readonly LogRecord[]): RequestSteps {
  const timed = records.map(timedOf).toSorted(byBegin)
  const first = timed[0]?.begin ?? 0n
  const last = timed.reduce((latest, { end }) => (end > latest ? end : latest), first)
  const steps = groupsOf(timed).flatMap((group) => stepsOf(group, first))
  return { steps, totalMicros: Number(last - first), traceIds: traceIdsOf(records) }
}

function timedOf(record: LogRecord): Timed {
  const end = BigInt(record.atMicros)
  const duration = BigInt(record.durationMicros ?? durationIn(record.fields))
  return { record, begin: end - duration, end }
}

function durationIn(fields: LogRecord['fields']): number {
  const { durationMicros } = (fields ?? {}) as { readonly durationMicros?: unknown }
  return typeof durationMicros === 'number' && Number.isSafeInteger(durationMicros)
    ? Math.max(durationMicros, 0)
    : 0
}

/** Steps that begin together stand with the longer one first, which contains the other. */
function byBegin(a: Timed, b: Timed): number {
  if (a.begin !== b.begin) return a.begin < b.begin ? -1 : 1
  if (a.end === b.end) return 0
  return a.end > b.end ? -1 : 1
}

/** The records of each invocation, at the place of the first; other records alone. */
function groupsOf(timed: readonly Timed[]): readonly (readonly Timed[])[] {
  const groups = new Map<string, Timed[]>()
  for (const each of timed) {
    const key = each.record.invocationId ?? each.record.cursor
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [each])
    else group.push(each)
  }
  return [...groups.values()]
}

function stepsOf(group: readonly Timed[], first: bigint): Step[] {
  const own = group.map(({ record, begin, end }) => ({
    key: record.cursor,
    name: record.event,
    message: record.message === record.event ? '' : record.message,
    level: record.level,
    beginsMicros: Number(begin - first),
    takesMicros: end === begin ? null : Number(end - begin),
    isInside: false,
  }))
  const { invocationId, function: name } = group[0]!.record
  if (invocationId === undefined) return own
  const end = group.reduce((latest, each) => (each.end > latest ? each.end : latest), first)
  const { begin } = group[0]!
  const spanning: Step = {
    key: invocationId,
    name: name ?? 'Function',
    message: invocationId,
    level: group.some(({ record }) => record.level === 'error') ? 'error' : 'info',
    beginsMicros: Number(begin - first),
    takesMicros: end === begin ? null : Number(end - begin),
    isInside: false,
  }
  return [spanning, ...own.map((step) => ({ ...step, isInside: true }))]
}

/** Also records of Functions have it; one that a Function wrote itself may be of any other form. */
function traceIdsOf(records: readonly LogRecord[]): string[] {
  const ids = records.map(({ fields }) => (fields as { trace_id?: unknown } | undefined)?.trace_id)
  return [...new Set(ids.filter((id): id is string => typeof id === 'string' && TRACE_ID.test(id)))]
}

/** The form of W3C Trace Context. */
const TRACE_ID = /^[0-9a-f]{32}$/

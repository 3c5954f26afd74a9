/** Turns records of the server's log into records of the Environment's log. */
import type { DroppedRecords } from '../../storage/logs/log-rows.ts'
import type { NewLogRow } from '../../storage/logs/log-store.ts'
import { LOG_LEVELS, type LogLevel, type LogRecord, type Plain } from '../../telemetry/log.ts'
import { LOG_RECORD_BYTES_MAX } from '../../wire/logs.ts'

/** Attributions of the contract that stand beside the event (Document 1, Health, metrics, logs). */
const ATTRIBUTIONS = [
  'releaseId',
  'function',
  'requestId',
  'invocationId',
  'scheduledId',
  'clientId',
  'credentialId',
  'outcome',
  'errorCode',
] as const

/** `error` has private details of the server, which stay in its own log. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...ATTRIBUTIONS,
  ...['at', 'level', 'event', 'message', 'stream', 'projectId', 'environmentId'],
  ...['durationMicros', 'lineLevel', 'error'],
])

/** A character has at most three bytes for each of its UTF-16 code units. */
const CHARACTERS_MIN_PER_BYTE = 1 / 3

/** Returns a row without a sequence. `data` of a line that a Function wrote becomes `fields`. */
export function collectedRow(entry: LogRecord, atMicros: bigint): NewLogRow {
  const level = levelOf(entry)
  const stream = streamOf(entry.stream)
  const body: Record<string, Plain> = {
    atMicros: String(atMicros),
    stream,
    level,
    event: entry.event.slice(0, 128),
    message: entry.message,
  }
  for (const name of ATTRIBUTIONS) {
    const value = entry[name]
    if (typeof value === 'string') body[name] = value
  }
  const { durationMicros } = entry
  if (durationMicros !== undefined && durationMicros !== null) {
    body.durationMicros = String(durationMicros)
  }
  body.errorCode ??= errorCodeOf(entry)
  if (body.errorCode === null) delete body.errorCode
  const fields = fieldsOf(entry)
  if (Object.keys(fields).length > 0) body.fields = fields
  const { releaseId, function: name, requestId } = body
  return {
    at: Number(atMicros),
    stream,
    level: LOG_LEVELS.indexOf(level),
    release: textOrNull(releaseId),
    function: textOrNull(name),
    request: textOrNull(requestId),
    record: bounded(body),
  }
}

/** Makes the record that tells of dropped ones. */
export function droppedRow(dropped: DroppedRecords, atMicros: bigint): NewLogRow {
  const count = dropped.rate + dropped.queue + dropped.failed
  const entry: LogRecord = {
    at: '',
    level: 'warn',
    event: 'log.dropped',
    message: `${count} log records were dropped.`,
    dropped: count,
    beyondRate: dropped.rate,
    beyondQueue: dropped.queue,
    notWritten: dropped.failed,
  }
  return collectedRow(entry, atMicros)
}

/** A debug line of a Function is written to the server's log as `info`. */
function levelOf({ level, lineLevel }: LogRecord): LogLevel {
  return LOG_LEVELS.find((each) => each === lineLevel) ?? level
}

function streamOf(stream: Plain | undefined): NewLogRow['stream'] {
  return stream === 'function' || stream === 'audit' ? stream : 'platform'
}

/** The code alone of an error that the record tells of. */
function errorCodeOf({ error }: LogRecord): string | null {
  if (error === null || typeof error !== 'object' || Array.isArray(error)) return null
  const { code } = error as { readonly [name: string]: Plain }
  return typeof code === 'string' ? code.slice(0, 128) : null
}

function fieldsOf(entry: LogRecord): Record<string, Plain> {
  const fields: Record<string, Plain> = {}
  for (const [name, value] of Object.entries(entry)) {
    if (!LEFT_OUT.has(name) && value !== null) fields[name] = value
  }
  const { data, ...rest } = fields
  if (entry.event !== 'function.log' || data === undefined) return fields
  const isObject = data !== null && typeof data === 'object' && !Array.isArray(data)
  return { ...rest, ...(isObject ? (data as Record<string, Plain>) : { data }) }
}

/** Leaves the fields out of a record that would be longer than the bound. */
function bounded(body: Readonly<Record<string, Plain>>): string {
  const text = JSON.stringify(body)
  if (text.length <= LOG_RECORD_BYTES_MAX * CHARACTERS_MIN_PER_BYTE) return text
  if (new TextEncoder().encode(text).length <= LOG_RECORD_BYTES_MAX) return text
  const omitted = `fields of ${text.length} characters in all`
  return JSON.stringify({ ...body, fields: { omitted } })
}

function textOrNull(value: Plain | undefined): string | null {
  return typeof value === 'string' ? value : null
}

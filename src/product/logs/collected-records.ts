/** Turns records of the server's log into the JSON of records of the Environment's log. */
import type { DroppedRecords, RecordColumns } from '../../storage/logs/log-rows.ts'
import {
  type CleanFields,
  LINE_EVENT,
  type LineTexts,
  type LogRecord,
  type Plain,
} from '../../telemetry/log.ts'
import { joinEntries, jsonEntries, jsonRecord, jsonText } from '../../value/logs/record-json.ts'
import { LOG_RECORD_BYTES_MAX } from '../../wire/logs.ts'

/**
 * Attributions, which are members of the record beside the event (contract/management.md, Health,
 * metrics, logs).
 */
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
  'at',
  'level',
  'event',
  'message',
  'stream',
  'projectId',
  'environmentId',
  'durationMicros',
  'error',
])

/**
 * A UTF-16 code unit has at most three bytes of UTF-8, so that a text this short fits without being
 * encoded.
 */
const CHARACTERS_MIN_PER_BYTE = 1 / 3

export function collectedRecord(entry: LogRecord, atMicros: bigint): string {
  const body: Record<string, Plain> = {
    atMicros: String(atMicros),
    stream: streamOf(entry.stream),
    level: entry.level,
    event: entry.event.slice(0, 128),
    message: entry.message,
    ...attributionsOf(entry),
  }
  const { durationMicros } = entry
  if (durationMicros !== undefined && durationMicros !== null) {
    body.durationMicros = String(durationMicros)
  }
  body.errorCode ??= errorCodeOf(entry)
  if (body.errorCode === null) delete body.errorCode
  return recordOf(jsonEntries(body), jsonEntries(otherFields(entry)))
}

/**
 * Returns the records of the lines that a Function printed in one call. The JSON of their common
 * members is made once. The data of a line become `fields`.
 */
export function lineRecords(
  call: CleanFields,
  lines: readonly LineTexts[],
  atMicros: bigint,
): readonly string[] {
  const attributions = jsonEntries(attributionsOf(call))
  const common = otherFields(call)
  return lines.map(({ level, message, data }) => {
    const kind = `"stream":"function","level":"${level}","event":"${LINE_EVENT}"`
    const head = `"atMicros":"${atMicros}",${kind},"message":${message}`
    return recordOf(joinEntries(head, attributions), fieldEntries(common, data))
  })
}

/** Returns the record that reports dropped records. */
export function droppedRecord(dropped: DroppedRecords, atMicros: bigint): string {
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
  return collectedRecord(entry, atMicros)
}

/** Makes a record of its entries and of the entries of `fields`, which are left out if too long. */
function recordOf(head: string, fields: string): string {
  if (fields === '') return jsonRecord(head)
  const text = jsonRecord(head, `"fields":{${fields}}`)
  return fits(text) ? text : jsonRecord(head, `"fields":${jsonText(omitted(text))}`)
}

function streamOf(stream: Plain | undefined): RecordColumns['stream'] {
  return stream === 'function' || stream === 'audit' ? stream : 'platform'
}

function attributionsOf(entry: CleanFields): Record<string, Plain> {
  const found: Record<string, Plain> = {}
  for (const name of ATTRIBUTIONS) {
    const value = entry[name]
    if (typeof value === 'string') found[name] = value
  }
  return found
}

/** Returns only the code of the record's error, whose message is private. */
function errorCodeOf({ error }: LogRecord): string | null {
  if (error === null || typeof error !== 'object' || Array.isArray(error)) return null
  const { code } = error as { readonly [name: string]: Plain }
  return typeof code === 'string' ? code.slice(0, 128) : null
}

function otherFields(entry: CleanFields): Record<string, Plain> {
  const fields: Record<string, Plain> = {}
  for (const [name, value] of Object.entries(entry)) {
    if (!LEFT_OUT.has(name) && value !== null) fields[name] = value
  }
  return fields
}

/**
 * Returns the entries of `fields`. If the data are an object, its entries replace common ones with
 * their names; otherwise they are the field `data`.
 */
function fieldEntries(common: CleanFields, data: string | null): string {
  const entries = jsonEntries(common)
  if (data === null || data === 'null') return entries
  if (!data.startsWith('{')) return joinEntries(entries, `"data":${data}`)
  // The data are parsed, because a name in both would be twice in the JSON.
  return entries === '' ? data.slice(1, -1) : jsonEntries({ ...common, ...JSON.parse(data) })
}

function fits(text: string): boolean {
  if (text.length <= LOG_RECORD_BYTES_MAX * CHARACTERS_MIN_PER_BYTE) return true
  return new TextEncoder().encode(text).length <= LOG_RECORD_BYTES_MAX
}

/** Returns the replacement for the fields of a record that would exceed LOG_RECORD_BYTES_MAX. */
function omitted(text: string) {
  return { omitted: `fields of ${text.length} characters in all` }
}

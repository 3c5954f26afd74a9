/** Operational log records: pages, the stream that follows them, and their archive. */
import { LOG_LEVELS } from '../value/logs/log-levels.ts'
import { FUNCTION_NAME } from '../value/manifest.ts'
import {
  idField,
  integer,
  listUpTo,
  Micros,
  PAGE_MAX,
  PageLimit,
  text,
  textUpTo,
  U64,
} from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const LOG_STREAMS = ['platform', 'function', 'audit'] as const

/** 24 sealed bytes: it opens in its Environment only, and not once it is damaged. */
export const LogCursor = text(/^logc_[A-Za-z0-9_-]{32}$/, 'a cursor of this log')

const LogStream = schema(['===', ...LOG_STREAMS])
const LogLevel = schema(['===', ...LOG_LEVELS])

/** Most characters of the name of a Function: a module path and a name in it. */
const FUNCTION_CHARACTERS_MAX = 512
const FunctionName = text(FUNCTION_NAME, 'the name of a Function')

const FILTERS = {
  'release?': idField('rel'),
  'request?': idField('req'),
  'stream?': LogStream,
  /** The lowest level. */
  'level?': LogLevel,
  'function?': FunctionName,
  'since?': Micros,
  'after?': LogCursor,
} as const

export const LogFollowQuery = schema(FILTERS)
export type LogFollowQuery = Infer<typeof LogFollowQuery>

export const LogQuery = schema({ ...FILTERS, 'limit?': PageLimit })
export type LogQuery = Infer<typeof LogQuery>

/** Bytes of one record as JSON. */
export const LOG_RECORD_BYTES_MAX = 64 * 1024

export const LogRecord = schema({
  cursor: LogCursor,
  atMicros: Micros,
  stream: LogStream,
  level: LogLevel,
  event: textUpTo(128),
  message: textUpTo(16_384),
  projectId: idField('prj'),
  environmentId: idField('env'),
  'releaseId?': textUpTo(64),
  'function?': textUpTo(FUNCTION_CHARACTERS_MAX),
  'requestId?': textUpTo(64),
  'invocationId?': textUpTo(64),
  'scheduledId?': textUpTo(64),
  'clientId?': textUpTo(64),
  'credentialId?': textUpTo(64),
  'durationMicros?': U64,
  'outcome?': textUpTo(64),
  'errorCode?': textUpTo(128),
  /** Further facts of the event, and the fields of `ctx.log`. */
  'fields?': { '[string]': 'unknown' },
})
export type LogRecord = Infer<typeof LogRecord>

export const LogPage = schema({
  version: '1',
  items: listUpTo(LogRecord, PAGE_MAX),
  /** `after` of the next page; null at the newest record. */
  next: [LogCursor, '|', 'null'],
})
export type LogPage = Infer<typeof LogPage>

/** A line of the stream while nothing happens. */
export const LogHeartbeat = schema({ heartbeat: 'true', cursor: [LogCursor, '|', 'null'] })
export type LogHeartbeat = Infer<typeof LogHeartbeat>

/** Each line of the stream is one of these. */
export const LogLine = schema([LogRecord, '|', LogHeartbeat])
export type LogLine = LogRecord | LogHeartbeat

const Frontier = schema({ cursor: LogCursor, atMicros: Micros, verifiedAtMicros: Micros })

export const LogArchiveStatus = schema({
  version: '1',
  /** The oldest record that can be read, then the newest; null if there is none. */
  oldestCursor: [LogCursor, '|', 'null'],
  newestCursor: [LogCursor, '|', 'null'],
  /** The newest record up to which the archive was found whole. */
  frontier: [Frontier, '|', 'null'],
  segments: integer(0),
  /** Bytes of all segments. */
  bytes: U64,
})
export type LogArchiveStatus = Infer<typeof LogArchiveStatus>

export const LOG_PRUNE_MAX = 1_000_000

export const LogPruneRequest = schema({
  beforeMicros: Micros,
  maximum: integer(1, LOG_PRUNE_MAX),
  'apply?': 'boolean',
  /** Must be that of the URL where `apply` is true. */
  'environmentId?': idField('env'),
})
export type LogPruneRequest = Infer<typeof LogPruneRequest>

export const LogPruned = schema({
  version: '1',
  /** Records that are old enough and archived, up to `maximum`. */
  eligible: integer(0),
  pruned: integer(0),
  frontier: [Frontier, '|', 'null'],
  applied: 'boolean',
})
export type LogPruned = Infer<typeof LogPruned>

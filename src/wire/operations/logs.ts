/** Operational logs: pages, the stream that follows them, their archive and their retention. */
import {
  LogArchiveStatus,
  LogFollowQuery,
  LogLine,
  LogPage,
  LogPruned,
  LogPruneRequest,
  LogQuery,
} from '../logs.ts'
import { LINES_MEDIA_TYPE } from '../media-types.ts'
import { environmentOperation } from './operation.ts'

/** 1,000 records of at most 64 KiB. */
const RESPONSE_BYTES_MAX = 80 * 1024 * 1024
const PRUNE_DEADLINE_MS = 300_000

export const listLogs = environmentOperation({
  method: 'GET',
  path: '/logs',
  name: 'listLogs',
  summary: 'A page of log records, oldest first; without a cursor the newest page.',
  capability: 'logs:read',
  query: LogQuery,
  replies: { 200: LogPage },
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const followLogs = environmentOperation({
  method: 'GET',
  path: '/logs/follow',
  name: 'followLogs',
  summary: 'Log records as they are written, one per line, and heartbeats in between.',
  capability: 'logs:follow',
  query: LogFollowQuery,
  mediaTypes: [LINES_MEDIA_TYPE],
  compresses: false,
  replies: { 200: LogLine },
})

export const readLogArchive = environmentOperation({
  method: 'GET',
  path: '/logs/archive-status',
  name: 'readLogArchive',
  summary: 'Coverage of the log archive, and up to where it was found whole.',
  capability: 'logs:read',
  replies: { 200: LogArchiveStatus },
})

export const pruneLogs = environmentOperation({
  method: 'POST',
  path: '/logs/prune',
  name: 'pruneLogs',
  summary: 'Removes archived log records that are old enough, or counts them.',
  capability: 'logs:prune',
  body: { schema: LogPruneRequest },
  // A lost response is settled by readLogArchive.
  replay: 'unsafe',
  replies: { 200: LogPruned },
  deadlineMs: PRUNE_DEADLINE_MS,
})

export const logOperations = { listLogs, followLogs, readLogArchive, pruneLogs }

/** The log routes of the linked Environment. */

import { Fault, isFault } from '../../../errors/fault.ts'
import { parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import {
  LogArchiveStatus,
  LogLine,
  LogPage,
  LogPruned,
  type LogPruneRequest,
  type LogRecord,
} from '../../../wire/logs.ts'
import { openSchema } from '../../../wire/schema.ts'
import { pause } from '../../pauses.ts'
import type { Remote } from '../../remotes.ts'

/** 1,000 records of at most 64 KiB. */
const PAGE_BYTES_MAX = 80 * 1024 * 1024
const RECONNECT_MS = 1_000

export function readLogs({ session, base }: Remote, query: URLSearchParams): Promise<LogPage> {
  return session.management({
    method: 'GET',
    path: `${base}/logs${query.size === 0 ? '' : `?${query}`}`,
    reply: LogPage,
    replay: 'safe',
    responseBytesMax: PAGE_BYTES_MAX,
  })
}

/**
 * Calls `onRecord` for each record in its turn, until the command is interrupted. A lost connection
 * is made again after the last record. Faults: those of the session, CLIENT_INTERRUPTED.
 */
export async function followLogs(
  { session, base }: Remote,
  query: URLSearchParams,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => Promise<void>,
): Promise<never> {
  const current = new URLSearchParams(query)
  const onLine = async (text: string): Promise<void> => {
    const line = await readLine(text)
    if (!('heartbeat' in line)) await onRecord(line)
    if (line.cursor !== null) current.set('after', line.cursor)
  }
  for (;;) {
    const path = `${base}/logs/follow${current.size === 0 ? '' : `?${current}`}`
    try {
      await session.lines(path, onLine)
    } catch (error) {
      const isLost =
        isFault(error) && (error.retryable || error.code === 'CLIENT_SERVER_UNREACHABLE')
      if (!isLost) throw error
    }
    await pause(RECONNECT_MS, signal)
  }
}

async function readLine(text: string): Promise<LogLine> {
  const { read } = await import('../../../wire/reading/read.ts')
  try {
    return read(
      openSchema(LogLine),
      parseStrictJson(Buffer.from(text)),
      'CLIENT_RESPONSE_INVALID',
    ) as LogLine
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'A line of the log is not JSON.' })
  }
}

export function readArchiveStatus({ session, base }: Remote): Promise<LogArchiveStatus> {
  return session.management({
    method: 'GET',
    path: `${base}/logs/archive-status`,
    reply: LogArchiveStatus,
    replay: 'safe',
  })
}

/** A lost answer is settled by `svc logs archive-status`. */
export function pruneLogs({ session, base }: Remote, body: LogPruneRequest): Promise<LogPruned> {
  return session.management({
    method: 'POST',
    path: `${base}/logs/prune`,
    body: { ...body },
    reply: LogPruned,
    replay: 'unsafe',
    deadlineMs: 300_000,
  })
}

/** Follows the log of the linked Environment. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { LogLine, type LogQuery, type LogRecord } from '../../../wire/logs.ts'
import { followLogs as followLogsOperation } from '../../../wire/operations/logs.ts'
import { openSchema } from '../../../wire/schema.ts'
import { pause } from '../../pauses.ts'
import type { Remote } from '../../roots/remotes.ts'

const RECONNECT_MS = 1_000

/** Filters and the page, by the names of the query parameters. */
export type LogFilters = { readonly [N in keyof LogQuery]: string | undefined }

/**
 * Calls `onRecord` for each record in its turn, until the command is interrupted. A lost connection
 * is made again after the last record. Faults: those of the session, CLIENT_INTERRUPTED.
 */
export async function followLogs(
  remote: Remote,
  query: LogFilters,
  signal: AbortSignal,
  onRecord: (record: LogRecord) => Promise<void>,
): Promise<never> {
  let { after } = query
  for (;;) {
    try {
      await readLog(remote, { ...query, after }, async (line) => {
        if (!('heartbeat' in line)) await onRecord(line)
        if (line.cursor !== null) after = line.cursor
      })
    } catch (error) {
      const isLost =
        isFault(error) && (error.retryable || error.code === 'CLIENT_SERVER_UNREACHABLE')
      if (!isLost) throw error
    }
    await pause(RECONNECT_MS, signal)
  }
}

/**
 * Calls `onLine` for each line of the log in its turn, until the connection ends, or it returns
 * LAST_LINE.
 */
export async function readLog(
  remote: Pick<Remote, 'lines'>,
  query: Partial<LogFilters>,
  onLine: (line: LogLine) => Promise<unknown>,
): Promise<void> {
  const onText = async (text: string) => onLine(await readLine(text))
  await remote.lines(followLogsOperation, onText, { query })
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

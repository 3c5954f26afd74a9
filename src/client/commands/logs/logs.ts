/** `svc logs`, `svc logs archive-status` and `svc logs prune`. */
import { isId } from '../../../value/ids.ts'
import { LOG_LEVELS } from '../../../value/logs/log-levels.ts'
import type { Json } from '../../../value/strict-json.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import {
  LOG_PRUNE_MAX,
  LOG_STREAMS,
  type LogArchiveStatus,
  type LogRecord,
} from '../../../wire/logs.ts'
import { listLogs, pruneLogs, readLogArchive } from '../../../wire/operations/logs.ts'
import {
  type CommandSpec,
  type Context,
  choice,
  command,
  flag,
  option,
  requiredOption,
} from '../../contexts.ts'
import { isPageLimit, nextPage, requestCommand } from '../../request-commands.ts'
import { openRemote } from '../../roots/remotes.ts'
import { timeText } from '../../timestamps.ts'
import { requireId, usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'
import { followLogs, type LogFilters } from './follow.ts'
import { humanLine, matches } from './log-lines.ts'
import { parseTime } from './times.ts'

const logs: CommandSpec = command({
  name: 'logs',
  summary: 'Read the log of the linked Environment, or follow it',
  details: [
    'Without --after it shows the newest records. With --json each record is one line.',
    'TIME is ISO 8601, such as 2026-01-31T08:00:00Z, or how long ago, such as 15m, 2h or 3d.',
  ],
  options: {
    ...REMOTE,
    follow: flag('Show records as they are written, until the command is interrupted'),
    release: option('rel_ID', 'Only records of this Release'),
    request: option('req_ID', 'Only records of this request'),
    stream: choice('STREAM', LOG_STREAMS, `Only this stream: ${LOG_STREAMS.join(', ')}`),
    function: option('NAME', 'Only records of this Function'),
    level: choice('LEVEL', LOG_LEVELS, `Only this level and higher ones: ${LOG_LEVELS.join(', ')}`),
    since: option('TIME', 'Only records of this time and later'),
    after: option('CURSOR', 'Only records after this cursor'),
    limit: option('COUNT', `Records of the page, 1 to ${PAGE_MAX}; 100 by default`),
    grep: option('PATTERN', 'Only records that this regular expression matches'),
  },
  examples: ['svc logs --follow --level warn', 'svc logs --since 1h --function tasks.add --json'],
  async run(context, options) {
    const query = queryOf(context, options)
    const pattern = patternOf(options.grep)
    const remote = await openRemote(context, options)
    const show = async (record: LogRecord): Promise<void> => {
      if (!matches(pattern, record)) return
      await context.output.line(record as unknown as Json, humanLine(context.output, record))
    }
    if (options.follow) {
      if (options.limit !== undefined) throw usage('--limit is not for --follow.', logs)
      await context.output.note('Following the log; interrupt to end.')
      await followLogs(remote, query, context.signal, show)
    }
    const page = await context.output.progress('reading the log', remote.call(listLogs, { query }))
    for (const record of page.items) await show(record)
    const next = nextPage(page)
    if (next !== null) await context.output.note(next)
  },
})

interface FilterOptions {
  readonly [name: string]: string | boolean | undefined
}

function queryOf(context: Context, options: FilterOptions): LogFilters {
  const given = options as Readonly<Record<string, string | undefined>>
  const { release, request, stream, level, after, limit } = given
  const problem = wrongId('--release', 'rel', release) ?? wrongId('--request', 'req', request)
  if (problem !== null) throw usage(problem, logs)
  if (limit !== undefined && !isPageLimit(limit)) {
    throw usage(`--limit is 1 to ${PAGE_MAX}.`, logs)
  }
  const filters = { release, request, stream, level, function: given.function, after, limit }
  return { ...filters, since: sinceOf(context, given.since) }
}

function sinceOf({ environment }: Context, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const micros = parseTime(text, environment.system.nowMicros())
  if (micros === null) throw usage('--since needs a time such as 15m.', logs)
  return String(micros)
}

function wrongId(name: string, prefix: 'rel' | 'req', value: string | undefined): string | null {
  if (value === undefined || isId(prefix, value)) return null
  return `${name} needs a ${prefix}_ identifier.`
}

function patternOf(text: string | undefined): RegExp | null {
  if (text === undefined) return null
  try {
    return new RegExp(text)
  } catch {
    throw usage('--grep needs a regular expression.', logs)
  }
}

const archiveStatus = requestCommand({
  name: 'logs archive-status',
  summary: 'Show what of the log is archived',
  options: REMOTE,
  progress: 'reading the archive',
  request: (remote) => remote.call(readLogArchive),
  lines: ({ segments, bytes, frontier }) => [
    `${segments} segments, ${bytes} bytes`,
    frontierText(frontier),
  ],
})

const prune: CommandSpec = requestCommand({
  name: 'logs prune',
  summary: 'Remove archived log records, or count them',
  details: [
    'Without --apply it counts. Only records behind the verified archive frontier are removed.',
  ],
  options: {
    ...REMOTE,
    'before-micros': requiredOption('MICROS', 'Only records before this time, since 1970'),
    maximum: requiredOption('COUNT', `Most records, 1 to ${LOG_PRUNE_MAX}`),
    apply: flag('Remove them; needs --environment'),
    environment: option('env_ID', 'The Environment, exactly'),
  },
  examples: ['svc logs prune --before-micros 1767225600000000 --maximum 100000'],
  input({ apply, environment, maximum, 'before-micros': beforeMicros }) {
    if (!/^(?:0|[1-9][0-9]{0,17})$/.test(beforeMicros)) {
      throw usage('--before-micros needs microseconds since 1970.', prune)
    }
    if (!/^[1-9][0-9]{0,6}$/.test(maximum) || Number(maximum) > LOG_PRUNE_MAX) {
      throw usage(`--maximum is 1 to ${LOG_PRUNE_MAX}.`, prune)
    }
    if (apply && environment === undefined) throw usage('--apply needs --environment.', prune)
    const environmentId =
      environment === undefined ? undefined : requireId('env', environment, '--environment', prune)
    return { beforeMicros, maximum: Number(maximum), apply, environmentId }
  },
  progress: 'pruning the log',
  request: (remote, body) => remote.call(pruneLogs, { body }),
  lines: ({ applied, pruned, eligible, frontier }) => [
    applied
      ? `Removed ${pruned} records.`
      : `${eligible} records can be removed; add --apply --environment to remove them.`,
    frontierText(frontier),
  ],
})

function frontierText(frontier: LogArchiveStatus['frontier']): string {
  if (frontier === null) return 'No record is in a verified segment yet.'
  const { atMicros, verifiedAtMicros } = frontier
  return `Archived up to ${timeText(atMicros)}, verified at ${timeText(verifiedAtMicros)}.`
}

export const logCommands: readonly CommandSpec[] = [logs, archiveStatus, prune]

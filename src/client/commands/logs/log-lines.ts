/** Log records as people read them. */
import { formatTimestamp } from '../../../value/plain.ts'
import type { LogRecord } from '../../../wire/logs.ts'
import type { Output, Style } from '../../output.ts'

/** Begins the further lines of a record. A record begins with its time, so text forges none. */
const CONTINUATION = '\n    | '
const TIME_WIDTH = 27
const LEVEL_WIDTH = 5
const ORIGIN_WIDTH = 24
const STYLE_OF_LEVEL: Readonly<Record<LogRecord['level'], Style | null>> = {
  debug: 'dim',
  info: null,
  warn: 'yellow',
  error: 'red',
}
/** Fields that the columns have, or that are the same in every record. */
const SHOWN: ReadonlySet<string> = new Set([
  'cursor',
  'atMicros',
  'stream',
  'level',
  'event',
  'message',
  'projectId',
  'environmentId',
  'function',
  'fields',
])

/** Time, level, Function or stream, message, and further facts; aligned up to the message. */
export function humanLine(output: Pick<Output, 'styled'>, record: LogRecord): string {
  const { atMicros, level, stream, event, message, fields = {} } = record
  const rest = Object.entries(record).filter(([name]) => !SHOWN.has(name))
  const facts = [...rest, ...Object.entries(fields)].map(([name, value]) => {
    return `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
  })
  const style = STYLE_OF_LEVEL[level]
  const shownLevel = level.padEnd(LEVEL_WIDTH)
  const isNamed = message === event || event === 'function.log'
  const columns = [
    output.styled('dim', formatTimestamp(BigInt(atMicros)).padEnd(TIME_WIDTH)),
    style === null ? shownLevel : output.styled(style, shownLevel),
    (record.function ?? stream).padEnd(ORIGIN_WIDTH),
    isNamed ? message : `${event}: ${message}`,
    ...(facts.length === 0 ? [] : [output.styled('dim', facts.join(' '))]),
  ]
  return columns.join(' ').replaceAll('\n', CONTINUATION)
}

/** Tells whether the pattern occurs in the record as it is printed, with its codes and fields. */
export function matches(pattern: RegExp | null, record: LogRecord): boolean {
  return pattern === null || pattern.test(humanLine(UNSTYLED, record))
}

const UNSTYLED: Pick<Output, 'styled'> = { styled: (_, text) => text }

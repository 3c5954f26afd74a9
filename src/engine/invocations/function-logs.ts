/** The log records of a call: the lines that its code wrote, and why it failed. */
import type { LogLine } from '../../runner/messages.ts'
import type { LogFields, Logger } from '../../telemetry/log.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { RunnerOutcome } from '../runners/outcomes.ts'
import { mapStack } from '../runners/stack-traces.ts'
import type { Invocation } from './invocation.ts'

/** Logs the outcome of one call under the name of its Function. */
export function logOutcome(
  log: Logger,
  { prepared: { release }, context, trace }: Pick<Invocation, 'prepared' | 'context' | 'trace'>,
  definition: FunctionManifest,
  outcome: RunnerOutcome,
): void {
  const lines = 'logs' in outcome ? (outcome.logs ?? []) : []
  if (lines.length === 0 && outcome.kind !== 'threw' && outcome.kind !== 'broken') return
  const fields: LogFields = {
    ...context,
    stream: 'function',
    releaseId: release.releaseId,
    function: definition.name,
    ...trace?.logFields,
  }
  // Asked first: most of the cost of a line beyond the rate would be its record.
  const admitted = lines.length === 0 ? 0 : log.admit(lines.length)
  for (let i = 0; i < admitted; i++) writeLine(log, fields, lines[i]!)
  if (outcome.kind === 'threw') {
    const { name, message, stack } = outcome.error
    const lines = mapStack(stack, release.sourceMap)
    log.warn('function.failed', { ...fields, message: `${name}: ${message}`, trace: lines })
  } else if (outcome.kind === 'broken') {
    log.warn('function.failed', { ...fields, message: outcome.detail })
  }
}

/** Writes a debug line at level `info`: the log level filters the server's records only. */
function writeLine(log: Logger, fields: LogFields, { level, message, data }: LogLine): void {
  const shown = data === null ? {} : { data: parsedData(data) }
  if (level !== 'debug') log[level]('function.log', { ...fields, message, ...shown })
  else log.info('function.log', { ...fields, lineLevel: level, message, ...shown })
}

/** Parses the data of a line. A hostile runner may send text that is not JSON. */
function parsedData(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

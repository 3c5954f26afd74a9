/** The log records of a call: the lines that its code wrote, and why it failed. */
import type { LogFields, Logger } from '../../telemetry/log.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
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
  if (lines.length > 0) log.lines(fields, lines)
  if (outcome.kind === 'threw') {
    const { name, message, stack } = outcome.error
    const lines = mapStack(stack, release.sourceMap)
    log.warn('function.failed', { ...fields, message: `${name}: ${message}`, trace: lines })
  } else if (outcome.kind === 'broken') {
    log.warn('function.failed', { ...fields, message: outcome.detail })
  }
}

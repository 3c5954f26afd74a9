/** The log of an application process. */
import { collectedRecord, lineRecords } from '../../product/logs/collected-records.ts'
import type { SecretRedaction } from '../../product/logs/secret-redaction.ts'
import type { ProductRoot } from '../../storage/root.ts'
import type { System } from '../../system/system.ts'
import { createLog, type Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { ServerIo } from '../io.ts'
import type { Channel } from './channel.ts'
import type { ApplicationSide, MainSide } from './messages.ts'

export interface ProcessLogParts {
  readonly root: ProductRoot
  readonly redaction: SecretRedaction
  readonly system: System
  readonly metrics: Metrics
  readonly channel: Channel<ApplicationSide, MainSide>
  readonly io: ServerIo
}

/** Opens the log: records go to its error output, and to the log of the Environment. */
export function processLog({
  root,
  redaction,
  system,
  metrics,
  channel,
  io,
}: ProcessLogParts): Logger {
  const { projectId, environmentId } = root.descriptor
  const log = createLog({
    system,
    sink: io.err,
    format: io.errIsTerminal ? 'human' : 'json',
    onDropped: () => metrics.counters.logRecordsDropped.add(),
  })
  return log.with(
    { projectId, environmentId },
    {
      redact: (text) => redaction.redact(text),
      collect: (record) => {
        const records = [collectedRecord(record, system.nowMicros())]
        channel.post({ kind: 'log', records })
      },
      collectLines: (call, lines) => {
        const records = [...lineRecords(call, lines, system.nowMicros())]
        channel.post({ kind: 'log', records })
      },
      // The main process bounds the records of all processes.
      admit: (lines) => lines,
    },
  )
}

/** Settings of the log: its archive and its retention. */
import { type ProcessEnvironment, wholeNumber } from './sources.ts'

const SEGMENT_MIB = { min: 1, max: 512, unit: ' of MiB' }
const SEGMENT_SECONDS = { min: 1, max: 86_400, unit: ' of seconds' }
/** Bounds of every retention. */
export const DAYS = { min: 1, max: 3_650, unit: ' of days' }
const MIB = 1024 * 1024

export interface LogSettings {
  /** Bytes of records after which an archive segment is closed. */
  readonly segmentBytesMax: number
  /** Seconds after which a segment is closed however short it is. */
  readonly segmentSecondsMax: number
  /** Days after which archived records leave the hot store. */
  readonly retentionDays: number
  /** Days after which segments without a record in the hot store are removed. */
  readonly archiveDays: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readLogSettings(environment: ProcessEnvironment): LogSettings {
  return {
    segmentBytesMax: wholeNumber(environment, 'SERVICE_LOG_SEGMENT_MIB', SEGMENT_MIB) * MIB,
    segmentSecondsMax: wholeNumber(environment, 'SERVICE_LOG_SEGMENT_SECONDS', SEGMENT_SECONDS),
    retentionDays: wholeNumber(environment, 'SERVICE_LOG_RETENTION_DAYS', DAYS),
    archiveDays: wholeNumber(environment, 'SERVICE_LOG_ARCHIVE_DAYS', DAYS),
  }
}

/** Settings of the log archive. */
import { type ProcessEnvironment, wholeNumber } from './sources.ts'

const SEGMENT_MIB = { min: 1, max: 512, unit: ' of MiB' }
const SEGMENT_SECONDS = { min: 1, max: 86_400, unit: ' of seconds' }
const MIB = 1024 * 1024

export interface LogSettings {
  /** Bytes of records after which an archive segment is closed. */
  readonly segmentBytesMax: number
  /** Seconds after which a segment is closed however short it is. */
  readonly segmentSecondsMax: number
}

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readLogSettings(environment: ProcessEnvironment): LogSettings {
  return {
    segmentBytesMax: wholeNumber(environment, 'SERVICE_LOG_SEGMENT_MIB', SEGMENT_MIB) * MIB,
    segmentSecondsMax: wholeNumber(environment, 'SERVICE_LOG_SEGMENT_SECONDS', SEGMENT_SECONDS),
  }
}

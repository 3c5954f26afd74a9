/** Timestamps of responses as text for people. */
import { formatTimestamp } from '../value/plain.ts'

/** Formats microseconds since the Unix epoch; `absent` stands for null. */
export function timeText(micros: string | null, absent = '-'): string {
  return micros === null ? absent : formatTimestamp(BigInt(micros))
}

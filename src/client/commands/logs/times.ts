/** Times on the command line: ISO 8601, microseconds since 1970, or how long ago. */
import { plainToValue } from '../../../value/plain.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'

const SPAN = /^([1-9][0-9]{0,5})([smhd])$/
const UNIT_MICROS = { s: 1_000_000n, m: 60_000_000n, h: 3_600_000_000n, d: 86_400_000_000n }

/** Returns the microseconds of a span such as `10m`; null for a text of another form. */
export function parseSpan(text: string): bigint | null {
  const span = SPAN.exec(text)
  return span === null ? null : BigInt(span[1]!) * UNIT_MICROS[span[2] as keyof typeof UNIT_MICROS]
}

/** Returns microseconds; null for a text that is not a time. */
export function parseTime(text: string, nowMicros: bigint): bigint | null {
  const ago = parseSpan(text)
  if (ago !== null) return nowMicros - ago
  try {
    const value = plainToValue(text, { type: 'timestamp' })
    return value instanceof Timestamp && value.micros >= 0n ? value.micros : null
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

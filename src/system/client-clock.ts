/** The bound on client clocks, by which a request is known to be too old for a first attempt. */
import { Fault } from '../errors/fault.ts'
import type { System } from './system.ts'

const CLOCK_DIFFERENCE_MAX_MICROS = 24n * 60n * 60n * 1_000_000n

/** Throws `code` unless the client's time is within 24 hours of the server's. */
export function requireRecent(
  system: Pick<System, 'nowMicros'>,
  atMicros: bigint,
  path: 'createdAtMicros' | 'changedAtMicros' | 'operationId',
  code: 'PRODUCT_INVALID' | 'PLATFORM_REQUEST_INVALID' = 'PRODUCT_INVALID',
): void {
  const difference = system.nowMicros() - atMicros
  if (difference > CLOCK_DIFFERENCE_MAX_MICROS || difference < -CLOCK_DIFFERENCE_MAX_MICROS) {
    const violations = [{ path, rule: 'within 24 hours of the server time' }]
    throw new Fault(code, { violations })
  }
}

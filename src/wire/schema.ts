/**
 * How a message is described: arktype, closed everywhere, and failures that say where and what is
 * expected but never what was received (its own messages echo the value).
 */
import './arktype-config.ts'
import { type } from 'arktype'
import type { TableCode } from '../errors/codes.ts'
import { Fault, type Violation } from '../errors/fault.ts'

/** Declares a message: `message({ code: 'string', 'deviceName?': 'string' })`. */
export const message = type

/** What a route or a client needs of a schema. */
export interface Schema<T> {
  readonly infer: T
  (data: unknown): unknown
}

const VIOLATIONS_MAX = 16

/** Throws a Fault with `code` and the violations. */
export function read<T>(schema: Schema<T>, data: unknown, code: TableCode): T {
  const result = schema(data)
  if (!(result instanceof type.errors)) return result as T
  const violations: Violation[] = result.slice(0, VIOLATIONS_MAX).map((error) => ({
    path: error.path.length === 0 ? '$' : error.path.stringify(),
    rule: ruleOf(error.expected),
  }))
  throw new Fault(code, { violations, detail: 'schema' })
}

/** A union's expectation quotes what it received behind "(was"; nothing from there on is kept. */
function ruleOf(expected: string): string {
  if (expected === 'removed') return 'no unknown field'
  const quoted = expected.indexOf(' (was ')
  return quoted === -1 ? expected : expected.slice(0, quoted)
}

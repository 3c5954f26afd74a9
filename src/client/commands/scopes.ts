/** Options that `clients` and `credentials` share. */
import { type ApplicationScope, isApplicationScope } from '../../value/application-scopes.ts'
import { idMillis } from '../../value/ids.ts'
import type { CommandSpec } from '../contexts.ts'
import { usage } from '../usage.ts'

/** Parses a list of scopes; the result is sorted and has no duplicates. */
export function parseScopes(text: string, command: CommandSpec): ApplicationScope[] {
  const scopes = [...new Set(text.split(',').map((scope) => scope.trim()))].sort()
  if (scopes.every(isApplicationScope)) return scopes
  throw usage('--scopes needs a list such as query,mutation.', command)
}

/**
 * Returns the time in an identifier, as microseconds since the Unix epoch. An equal identifier thus
 * makes an equal request.
 */
export function createdAtMicros(id: string): string {
  return String(BigInt(idMillis(id)) * 1000n)
}

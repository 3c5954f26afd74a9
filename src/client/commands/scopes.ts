/** Options that `clients` and `credentials` share. */

import { isApplicationScope } from '../../value/application-scopes.ts'
import { idMillis } from '../../value/ids.ts'
import type { CommandSpec } from '../contexts.ts'
import { usage } from '../usage.ts'

/** Sorted, each once. */
export function parseScopes(text: string, command: CommandSpec): string[] {
  const scopes = [...new Set(text.split(',').map((scope) => scope.trim()))].sort()
  if (scopes.every(isApplicationScope)) return scopes
  throw usage('--scopes needs a list such as query,mutation.', command)
}

/**
 * The creation time is the one in the identifier, so that the same command line with the same
 * identifier is the same request, however often it is sent.
 */
export function createdAtMicros(id: string): string {
  return String(BigInt(idMillis(id)) * 1000n)
}

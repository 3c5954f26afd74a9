/** Options that `clients` and `credentials` share. */
import { type ApplicationScope, isApplicationScope } from '../../value/application-scopes.ts'
import { idMillis } from '../../value/ids.ts'
import { listParts } from '../command-line/arguments.ts'

/** Returns the scopes of a list that the parser of the command line accepted, sorted. */
export function parseScopes(text: string): ApplicationScope[] {
  return listParts(text).filter(isApplicationScope)
}

/**
 * Returns the time in an identifier, as microseconds since the Unix epoch. An equal identifier thus
 * makes an equal request.
 */
export function createdAtMicros(id: string): string {
  return String(BigInt(idMillis(id)) * 1000n)
}

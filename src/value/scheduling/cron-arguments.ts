/** The arguments of the calls of a Cron, checked against the Function that it calls. */
import { admit } from '../identities.ts'
import type { CronManifest, FunctionManifest } from '../manifest.ts'
import { encodeStored, fromStoredJson } from '../stored.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator } from '../validators.ts'
import { CRON_ARGUMENTS_CHARACTERS_MAX } from './crons.ts'

/**
 * Returns the arguments of the calls as Stored JSON text. Throws ValidationError, whose path begins
 * at the Cron, for a Function that a Cron cannot call, and for arguments that do not fit it.
 */
export function cronArguments(
  { arguments: json }: CronManifest,
  callee: FunctionManifest | undefined,
): string {
  if (callee === undefined || callee.kind === 'query') {
    throw new ValidationError('a Mutation or an Action of this Workspace', 'function')
  }
  if (admit(callee.auth, null) !== null) {
    throw new ValidationError('a Function that needs no identity, as a Cron has none', 'function')
  }
  const check = compileValidator(
    { type: 'object', fields: callee.arguments },
    // Numbers and texts of a Workspace do not tell timestamps and IDs.
    { coerce: true },
  )
  const text = encodeStored(check(fromStoredJson(json, 'arguments'), 'arguments'))
  if (text.length <= CRON_ARGUMENTS_CHARACTERS_MAX) return text
  throw new ValidationError(`at most ${CRON_ARGUMENTS_CHARACTERS_MAX} characters`, 'arguments')
}

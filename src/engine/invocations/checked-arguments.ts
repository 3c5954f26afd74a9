/** Checks arguments with the Function's validators and encodes them for the runner. */
import { Fault } from '../../errors/fault.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import { ARGUMENT_BYTES_MAX } from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'

interface Call {
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
}

export interface CheckedCall {
  /** Stored JSON. */
  readonly argumentsText: string
  /** The result of `callKeyOf`. */
  readonly callKey: string
}

/**
 * Checks the arguments and returns them as stored JSON. The check does not change them, so the text
 * identifies a repeat in any Release. Throws ARGUMENTS_INVALID and LIMIT_EXCEEDED.
 */
export function checkedArguments(prepared: PreparedRelease, call: Call): string {
  check(prepared, call.definition, call.arguments)
  const argumentsText = encodeStored(call.arguments)
  if (argumentsText.length > ARGUMENT_BYTES_MAX) {
    throw new Fault('LIMIT_EXCEEDED', { detail: `arguments: at most ${ARGUMENT_BYTES_MAX} bytes` })
  }
  return argumentsText
}

/** Checks arguments and caches the last result by object: a repeated request has the same one. */
export class ArgumentChecks {
  readonly #cache = new WeakMap<
    ValueObject,
    CheckedCall & { readonly definition: FunctionManifest }
  >()

  /** Throws ARGUMENTS_INVALID and LIMIT_EXCEEDED. */
  check(prepared: PreparedRelease, call: Call): CheckedCall {
    const { definition, arguments: value } = call
    const cached = this.#cache.get(value)
    if (cached?.definition === definition) return cached
    const argumentsText = checkedArguments(prepared, call)
    const callKey = callKeyOf({ prepared, definition, argumentsText })
    const checked = { definition, argumentsText, callKey }
    this.#cache.set(value, checked)
    return checked
  }
}

/** Returns a text that is equal for equal calls of one Release by any caller. */
export function callKeyOf({
  prepared,
  definition,
  argumentsText,
}: {
  readonly prepared: PreparedRelease
  readonly definition: FunctionManifest
  readonly argumentsText: string
}): string {
  return `${prepared.release.releaseId}\n${definition.name}\n${argumentsText}`
}

function check(prepared: PreparedRelease, definition: FunctionManifest, value: ValueObject) {
  try {
    prepared.functions.get(definition.name)!.checkArguments(value, 'arguments')
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('ARGUMENTS_INVALID', { detail: error.message })
  }
}

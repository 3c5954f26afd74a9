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

export interface CheckedArguments {
  /** Stored JSON of the arguments with their defaults, as the handler gets them. */
  readonly argumentsText: string
  /** Stored JSON of the arguments without, which identifies a repeat in any Release. */
  readonly givenText: string
}

export interface CheckedCall extends CheckedArguments {
  /** The result of `callKeyOf`. */
  readonly callKey: string
}

/** Checks the arguments. Throws ARGUMENTS_INVALID and LIMIT_EXCEEDED. */
export function checkedArguments(prepared: PreparedRelease, call: Call): CheckedArguments {
  const whole = check(prepared, call.definition, call.arguments)
  const givenText = encodeStored(call.arguments)
  const argumentsText = whole === call.arguments ? givenText : encodeStored(whole)
  if (argumentsText.length > ARGUMENT_BYTES_MAX) {
    throw new Fault('LIMIT_EXCEEDED', { detail: `arguments: at most ${ARGUMENT_BYTES_MAX} bytes` })
  }
  return { argumentsText, givenText }
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
    const texts = checkedArguments(prepared, call)
    const callKey = callKeyOf({ prepared, definition, argumentsText: texts.argumentsText })
    const checked = { definition, ...texts, callKey }
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
    return prepared.functions.get(definition.name)!.checkArguments(value, 'arguments')
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('ARGUMENTS_INVALID', { detail: error.message })
  }
}

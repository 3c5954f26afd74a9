/** Arguments as a runner takes them: checked by the Function's validators, in stored form. */
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

export interface Checked {
  readonly argumentsText: string
  /** As of `callKeyOf`. */
  readonly callKey: string
}

/**
 * Stored JSON of what was sent, which an exact check leaves as it is: a repeat is known by this
 * text whatever code it meets. Raises ARGUMENTS_INVALID and LIMIT_EXCEEDED.
 */
export function checkedArguments(prepared: PreparedRelease, call: Call): string {
  check(prepared, call.definition, call.arguments)
  const argumentsText = encodeStored(call.arguments)
  if (argumentsText.length > ARGUMENT_BYTES_MAX) {
    throw new Fault('LIMIT_EXCEEDED', { detail: 'argument bytes' })
  }
  return argumentsText
}

/** The last check of a value is kept with it, for callers that send one value again and again. */
export class CheckedArguments {
  readonly #kept = new WeakMap<ValueObject, Checked & { readonly definition: FunctionManifest }>()

  /** Raises ARGUMENTS_INVALID and LIMIT_EXCEEDED. */
  of(prepared: PreparedRelease, call: Call): Checked {
    const { definition, arguments: value } = call
    const known = this.#kept.get(value)
    if (known?.definition === definition) return known
    const argumentsText = checkedArguments(prepared, call)
    const callKey = callKeyOf({ prepared, definition, argumentsText })
    const checked = { definition, argumentsText, callKey }
    this.#kept.set(value, checked)
    return checked
  }
}

/** The same text for the same call of the same Release, whoever makes it. */
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

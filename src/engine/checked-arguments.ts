/**
 * Arguments as a runner takes them: checked by the Function's validators, in stored form. The last
 * check of a value is kept with it, for callers that send one value again and again.
 */
import { Fault } from '../errors/fault.ts'
import { Malformed } from '../value/malformed.ts'
import type { FunctionManifest } from '../value/manifest.ts'
import { encodeStored } from '../value/stored.ts'
import type { ValueObject } from '../value/values.ts'
import { ARGUMENT_BYTES_MAX } from './limits.ts'
import type { PreparedRelease } from './prepared-release.ts'

interface Call {
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
}

export class CheckedArguments {
  readonly #texts = new WeakMap<ValueObject, { definition: FunctionManifest; text: string }>()

  /** Raises ARGUMENTS_INVALID and LIMIT_EXCEEDED. */
  textOf(prepared: PreparedRelease, { definition, arguments: value }: Call): string {
    const known = this.#texts.get(value)
    if (known?.definition === definition) return known.text
    const text = encodeStored(check(prepared, definition, value))
    if (text.length > ARGUMENT_BYTES_MAX) {
      throw new Fault('LIMIT_EXCEEDED', { detail: 'argument bytes' })
    }
    this.#texts.set(value, { definition, text })
    return text
  }
}

function check(prepared: PreparedRelease, definition: FunctionManifest, value: ValueObject) {
  try {
    return prepared.functions.get(definition.name)!.checkArguments(value, 'arguments')
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new Fault('ARGUMENTS_INVALID', { detail: error.message })
  }
}

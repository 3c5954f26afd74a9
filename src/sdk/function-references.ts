/** References of `_generated/api`, by which declarations name the Functions that they call. */
import { DefinitionError } from './definition-errors.ts'
import { kindOf } from './validators.ts'

const REFERENCE = Symbol.for('svc.reference')
const FUNCTION = Symbol.for('svc.function')

interface Named {
  /** The option that has the reference, for messages. */
  readonly option: string
  /** A reference, such as `internal.digest.send`. */
  readonly example: string
}

/** Returns the name of the Function of a reference. Throws DefinitionError. */
export function referencedFunction(reference: unknown, { option, example }: Named): string {
  const marked = (reference ?? {}) as Readonly<Record<string | symbol, unknown>>
  const path = marked[REFERENCE]
  if (typeof path === 'string') return path
  if (typeof marked.name === 'string' && typeof marked.kind === 'string') return marked.name
  throw new DefinitionError(
    marked[FUNCTION] === undefined
      ? `${option} is ${kindOf(reference)}`
      : `${option} is the Function itself`,
    `Use its reference of "_generated/api", such as ${example}`,
  )
}

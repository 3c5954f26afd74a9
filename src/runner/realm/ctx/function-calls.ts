/** `ctx.runQuery`, `ctx.runMutation` and `ctx.runAction`. */
import type { Call } from '../calls.ts'
import { encode } from '../encoding.ts'
import { callFunction } from '../operations.ts'

type Kind = Call['definition']['kind']
export type Reference = Readonly<Record<string | symbol, unknown>>

const METHODS = { query: 'ctx.runQuery', mutation: 'ctx.runMutation', action: 'ctx.runAction' }
const { stringify } = JSON
const referenceKey = Symbol.for('svc.reference')
const functionKey = Symbol.for('svc.function')

/** Creates the method of `ctx` that calls Functions of one kind. */
export function functionCaller(call: Call, kind: Kind) {
  return (reference: Reference, args: unknown = {}): Promise<unknown> => {
    const method = METHODS[kind]
    checkKind(kind, call.definition.kind)
    const name = nameOf(reference, method)
    const op = `["run","${kind}",${stringify(name)},${encode(args, `${method} of ${name}`)}]`
    return callFunction(call, kind, op, method)
  }
}

function checkKind(kind: Kind, caller: Kind): void {
  if (kind === 'mutation' && caller === 'query') {
    throw new TypeError(`${METHODS.mutation} in a Query: make the Function a mutation`)
  }
  if (kind === 'action' && caller !== 'action') {
    throw new TypeError(
      `${METHODS.action}: only an Action calls an Action: make the Function an action`,
    )
  }
}

/** Returns the name of the Function of a reference; `method` is what the author wrote. */
export function nameOf(reference: Reference | null | undefined, method: string): string {
  const path: unknown = reference?.[referenceKey]
  if (typeof path === 'string') return path
  const name: unknown = reference?.name
  if (typeof name === 'string' && typeof reference?.kind === 'string') return name
  throw new TypeError(
    reference?.[functionKey] === undefined
      ? `${method} needs a reference such as internal.messages.list of "_generated/api"`
      : `${method} is given the Function itself: pass its reference of "_generated/api"`,
  )
}

/** `ctx.config`: variables of the Environment, and its secrets in an Action. */
import type { Call } from '../calls.ts'
import { sendRead } from '../operations.ts'

const NAME = /^[A-Z0-9][A-Z0-9_]{0,63}$/

function readValue(call: Call, kind: 'variable' | 'secret', name: unknown): Promise<unknown> {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new TypeError(`ctx.config.${kind} needs a name such as "API_KEY"`)
  }
  return sendRead(call, `["config","${kind}","${name}"]`)
}

export class Configuration {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  variable(name: unknown): Promise<unknown> {
    return readValue(this.#call, 'variable', name)
  }

  secret(name: unknown): Promise<unknown> {
    if (this.#call.definition.kind === 'action') return readValue(this.#call, 'secret', name)
    throw new TypeError(
      'ctx.config.secret: only an Action reads secrets; do that part in an action(...)',
    )
  }
}

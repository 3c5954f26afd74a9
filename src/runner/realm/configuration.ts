/** `ctx.config`: variables of the Environment, and its secrets in an Action. */
import type { Call, makeOperations } from './calls.ts'

export function makeConfiguration(operations: ReturnType<typeof makeOperations>) {
  const form = /^[A-Z0-9][A-Z0-9_]{0,63}$/

  function ask(call: Call, kind: 'variable' | 'secret', name: unknown): Promise<unknown> {
    if (typeof name !== 'string' || !form.test(name)) {
      throw new TypeError(`ctx.config.${kind} needs a name such as "API_KEY"`)
    }
    return operations.read(call, `["config","${kind}","${name}"]`)
  }

  return class Configuration {
    readonly #call: Call

    constructor(call: Call) {
      this.#call = call
    }

    variable(name: unknown): Promise<unknown> {
      return ask(this.#call, 'variable', name)
    }

    secret(name: unknown): Promise<unknown> {
      if (this.#call.definition.kind === 'action') return ask(this.#call, 'secret', name)
      throw new TypeError(
        'ctx.config.secret: only an Action reads secrets; do that part in an action(...)',
      )
    }
  }
}

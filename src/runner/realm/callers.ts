/** `ctx.auth`: who calls, as far as the Function's mode lets it see. */
import type { FunctionalIdentity } from '../../value/identities.ts'
import type { Call, makeOperations } from './calls.ts'

/** `secondsMax` is how long a guest may stay one. */
export function makeAuth(operations: ReturnType<typeof makeOperations>, secondsMax: number) {
  const { isInteger } = Number

  return class Auth {
    readonly #call: Call

    constructor(call: Call) {
      this.#call = call
    }

    get identity(): FunctionalIdentity | null {
      const { definition, identity } = this.#call
      // Where nobody is ever seen, looking tells nothing.
      if (definition.auth !== 'none') this.#call.usedIdentity = true
      return identity
    }

    get guest(): FunctionalIdentity | null {
      return this.#only('guest')
    }

    get user(): FunctionalIdentity | null {
      return this.#only('user')
    }

    get service(): FunctionalIdentity | null {
      return this.#only('service')
    }

    #only(kind: FunctionalIdentity['kind']): FunctionalIdentity | null {
      const { identity } = this
      return identity?.kind === kind ? identity : null
    }

    /** Answers a bearer. */
    issueGuest(options: { readonly expiresInSeconds?: unknown }): Promise<unknown> {
      const seconds = options?.expiresInSeconds
      if (this.#call.definition.kind === 'query') {
        throw new TypeError(
          'ctx.auth.issueGuest in a Query: its result is kept and shown to others; make the ' +
            'Function a mutation or an action',
        )
      }
      if (!isInteger(seconds) || (seconds as number) < 1 || (seconds as number) > secondsMax) {
        throw new RangeError(
          `ctx.auth.issueGuest: expiresInSeconds is a whole number from 1 to ${secondsMax}`,
        )
      }
      return operations.read(this.#call, `["issueGuest",${seconds}]`)
    }
  }
}

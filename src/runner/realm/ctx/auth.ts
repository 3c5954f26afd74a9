/** `ctx.auth`: the identity of the caller that the Function's mode reveals. */
import { type FunctionalIdentity, GUEST_SECONDS_MAX } from '../../../value/identities.ts'
import type { Call } from '../calls.ts'
import { sendRead } from '../operations.ts'

const { isInteger } = Number

export class Auth {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  get identity(): FunctionalIdentity | null {
    const { definition, identity } = this.#call
    // In this mode it is always null, so reading it reveals nothing about the caller.
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

  /** Returns a bearer token. */
  issueGuest(options: { readonly expiresInSeconds?: unknown }): Promise<unknown> {
    const seconds = options?.expiresInSeconds
    if (this.#call.definition.kind === 'query') {
      throw new TypeError(
        'ctx.auth.issueGuest in a Query: its result is kept and shown to others; make the ' +
          'Function a mutation or an action',
      )
    }
    if (!isInteger(seconds) || (seconds as number) < 1 || (seconds as number) > GUEST_SECONDS_MAX) {
      throw new RangeError(
        `ctx.auth.issueGuest: expiresInSeconds is a whole number from 1 to ${GUEST_SECONDS_MAX}`,
      )
    }
    return sendRead(this.#call, `["issueGuest",${seconds}]`)
  }
}

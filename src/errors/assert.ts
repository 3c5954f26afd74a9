/** Programmer errors: they stop the current request with an internal failure, never with a 4xx. */

export class AssertionFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AssertionFailure'
  }
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailure(message)
}

/** Ends every `switch` over a union, so that a new member does not compile. */
export function unreachable(value: never): never {
  throw new AssertionFailure(`unreachable: ${String(value)}`)
}

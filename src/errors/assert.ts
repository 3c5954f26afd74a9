/** Assertions. A failed one is a programming error: its request fails with 500, never with 4xx. */

export class AssertionFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AssertionFailure'
  }
}

/** Throws an AssertionFailure unless the condition holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailure(message)
}

/** Throws. As the last case of a `switch` over a union, it makes a new member fail to compile. */
export function unreachable(value: never): never {
  throw new AssertionFailure(`unreachable: ${String(value)}`)
}

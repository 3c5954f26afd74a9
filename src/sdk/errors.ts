/** Classes for `instanceof` of the errors that the runner throws in the code of an author. */

const VIOLATION = Symbol.for('svc.uniqueViolation')

/** Recognizes its instances by a symbol: the runner makes them outside of this bundle. */
export class UniqueViolation extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && VIOLATION in value
  }
}

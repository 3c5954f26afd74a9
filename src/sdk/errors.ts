/** Classes by which authors recognize errors of the runner with `instanceof`. */

const VIOLATION = Symbol.for('svc.uniqueViolation')

/** A class whose instances have a symbol, since the runner makes them outside of this bundle. */
export class UniqueViolation extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && VIOLATION in value
  }
}

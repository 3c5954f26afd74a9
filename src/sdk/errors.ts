/** Errors that the server throws inside an author's code, as classes that `instanceof` knows. */

const VIOLATION = Symbol.for('svc.uniqueViolation')

/** The server makes these errors, outside of this bundle: the mark tells them, not a prototype. */
export class UniqueViolation extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && VIOLATION in value
  }
}

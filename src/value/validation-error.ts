/** The one error of the pure value folder: a text, value or identifier that breaks a rule. */
export class ValidationError extends Error {
  /** Where, such as `$.items[3].name`. Never a value. */
  readonly path: string
  /** The expectation at that path. Never the received value. */
  readonly rule: string

  constructor(rule: string, path = '$') {
    super(`${path}: ${rule}`)
    this.name = 'ValidationError'
    this.path = path
    this.rule = rule
  }
}

/**
 * Adds `part`, such as `.name` or `[3]`, to the path of an error inside a part of the value at
 * `path`. A reader passes its own path to its parts, since building one for each part costs more
 * than most reads.
 */
export function inPart(error: unknown, path: string, part: string): unknown {
  if (!(error instanceof ValidationError)) return error
  return new ValidationError(error.rule, `${path}${part}${error.path.slice(path.length)}`)
}

/** Names of fields. Longer ones, addresses and numbers are likely to be values in their place. */
const FIELD_NAME = /^[\p{L}_$][\p{L}\p{N}_$-]{0,39}$/u

/** The part of a path for a key that came with the value; `.*` where the key may be a value. */
export function keyPart(key: string): string {
  return FIELD_NAME.test(key) ? `.${key}` : '.*'
}

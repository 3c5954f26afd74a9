/** Error of a text, value or identifier that breaks a rule. */
export class ValidationError extends Error {
  /** Location such as `$.items[3].name`. It contains no value. */
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

/** Plausible field names. Longer texts, addresses and numbers may be secrets used as keys. */
const FIELD_NAME = /^[\p{L}_$][\p{L}\p{N}_$-]{0,39}$/u

/** Returns the path part of a received key; `.*` where the key may be a secret. */
export function keyPart(key: string): string {
  return FIELD_NAME.test(key) ? `.${key}` : '.*'
}

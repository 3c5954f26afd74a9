/** The one error of the pure value folder: a text, value or identifier that breaks a rule. */
export class Malformed extends Error {
  /** Where, such as `$.items[3].name`. Never a value. */
  readonly path: string
  /** What is expected there. Never what was received. */
  readonly rule: string

  constructor(rule: string, path = '$') {
    super(`${path}: ${rule}`)
    this.name = 'Malformed'
    this.path = path
    this.rule = rule
  }
}

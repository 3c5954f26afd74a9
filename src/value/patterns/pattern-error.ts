/** Error of an unsupported or malformed pattern. It quotes at most one construct of the text. */
export class PatternError extends Error {
  /** Noun phrase such as `a look-ahead at character 3`. */
  readonly wrong: string
  readonly fix: string

  constructor(wrong: string, fix: string) {
    super(`${wrong}. ${fix}.`)
    this.name = 'PatternError'
    this.wrong = wrong
    this.fix = fix
  }
}

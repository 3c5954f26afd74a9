/** Why a text is no pattern; `wrong` and `mend` never hold more of it than one construct. */
export class PatternError extends Error {
  /** Reads on after "the pattern has": `a look-ahead at character 3`. */
  readonly wrong: string
  readonly mend: string

  constructor(wrong: string, mend: string) {
    super(`${wrong}. ${mend}.`)
    this.name = 'PatternError'
    this.wrong = wrong
    this.mend = mend
  }
}

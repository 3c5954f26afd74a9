/**
 * An answer to a Function's own mistake, such as an unknown table: it is thrown inside the
 * author's code at the call that made it, so its message names what is wrong and the mend.
 */
export class Refusal extends Error {
  constructor(name: string, message: string) {
    super(message)
    this.name = name
  }
}

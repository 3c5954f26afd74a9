/** A credential in memory. However it is printed it reads `[redacted]`. */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The only way to the text: for a digest, a connection or the one answer that reveals it. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return '[redacted]'
  }

  toJSON(): string {
    return '[redacted]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[redacted]'
  }
}

/** Redacts the exact values of the Environment's secrets in what is logged. */
import type { Secret } from '../../value/secret.ts'

/**
 * Minimum length of redacted values. Shorter values occur in unrelated words, and the redactions
 * would reveal them.
 */
export const REDACTED_CHARACTERS_MIN = 4
const REDACTED = '[redacted]'
/** Maximum number of values. Replaced values stay, because calls in flight may still print them. */
const SECRETS_MAX = 4_096

export class SecretRedaction {
  /** Secrets by their first characters, the longest of each first. */
  readonly #byStart = new Map<string, Secret[]>()
  /** 1 for each code unit with which a secret begins, so that most positions cost little. */
  readonly #isFirst = new Uint8Array(2 ** 16)
  #count = 0

  /** Adds values. A value that is present already is ignored. */
  add(secrets: Iterable<Secret>): void {
    for (const secret of secrets) {
      const text = secret.reveal()
      if (text.length < REDACTED_CHARACTERS_MIN || this.#count >= SECRETS_MAX) continue
      const start = text.slice(0, REDACTED_CHARACTERS_MIN)
      const known = this.#byStart.get(start) ?? []
      if (known.some((each) => each.reveal() === text)) continue
      known.push(secret)
      known.sort((a, b) => b.reveal().length - a.reveal().length)
      this.#byStart.set(start, known)
      this.#isFirst[text.charCodeAt(0)] = 1
      this.#count += 1
    }
  }

  /** Redacts all secrets in the text, with one look-up at each position. */
  redact(text: string): string {
    if (this.#count === 0) return text
    let out = ''
    let copied = 0
    for (let at = 0; at + REDACTED_CHARACTERS_MIN <= text.length; ) {
      const found = this.#isFirst[text.charCodeAt(at)] === 0 ? undefined : this.#find(text, at)
      if (found === undefined) {
        at += 1
        continue
      }
      out += text.slice(copied, at) + REDACTED
      at += found.reveal().length
      copied = at
    }
    return out + text.slice(copied)
  }

  /** Returns the longest secret that is at this position of the text. */
  #find(text: string, at: number): Secret | undefined {
    const candidates = this.#byStart.get(text.slice(at, at + REDACTED_CHARACTERS_MIN))
    return candidates?.find((secret) => text.startsWith(secret.reveal(), at))
  }
}

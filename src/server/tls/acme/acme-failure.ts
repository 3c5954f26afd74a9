/** A failed order. Texts of the authority are bounded, and have no control characters. */
const REASON_CHARACTERS_MAX = 400

export class AcmeFailure extends Error {
  /** Milliseconds after which the authority accepts another try; null if it named none. */
  readonly retryAfterMillis: number | null

  constructor(
    reason: string,
    {
      retryAfterMillis = null,
      cause,
    }: { readonly retryAfterMillis?: number | null; readonly cause?: unknown } = {},
  ) {
    super(oneLine(reason), { cause })
    this.name = 'AcmeFailure'
    this.retryAfterMillis = retryAfterMillis
  }
}

/** Returns the reason of any failure, for the log, the record of orders and the doctor. */
export function reasonOfFailure(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : 'an unknown failure')
}

function oneLine(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  return plain.length > REASON_CHARACTERS_MAX ? `${plain.slice(0, REASON_CHARACTERS_MAX)}…` : plain
}

/** Describes the `error` of a challenge or an order, or the body of a response (RFC 7807). */
export function problemText(problem: unknown): string {
  const { type, detail } = (problem ?? {}) as { readonly type?: unknown; readonly detail?: unknown }
  const parts = [type, detail].filter((part): part is string => typeof part === 'string')
  return parts.length === 0 ? 'no reason given' : parts.join(': ')
}

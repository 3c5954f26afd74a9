/** The form of an access token of an identity provider. */

/** Fits into an Authorization header of at most 16 KiB (contract/management.md, Limits). */
const TOKEN_LENGTH_MAX = 16_000
/** RFC 6750, section 2.1. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

export function isExternalToken(text: string): boolean {
  return text.length <= TOKEN_LENGTH_MAX && TOKEN.test(text)
}

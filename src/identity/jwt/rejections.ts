/**
 * Reasons to reject a signed token. Each text is a constant: the log names the failed check, and
 * must contain no part of the token.
 */

/** @limit Identity and keys: a functional token */
export const TOKEN_BYTES_MAX = 16 * 1024
/**
 * OpenID Connect Core 1.0, section 2.
 * @limit Identity and keys: the subject of a functional token
 */
export const SUBJECT_CHARACTERS_MAX = 255
/** @limit Identity and keys: roles of a functional token */
export const ROLES_MAX = 256
export const CLAIMS_DEPTH_MAX = 16

export const TOKEN_REJECTIONS = {
  length: `the token is longer than ${TOKEN_BYTES_MAX / 1024} KiB`,
  form: 'the token is not three parts of canonical base64url',
  headerLength: 'the header is longer than 4 KiB',
  header: 'the header is not one strict JSON object',
  claims: `the claims are not one strict JSON object of at most ${CLAIMS_DEPTH_MAX} levels`,
  algorithm: 'the algorithm (alg) is not configured for the issuer',
  critical: 'the header names critical extensions (crit)',
  unencoded: 'the header has the extension b64',
  type: 'the type (typ) is not the required one',
  keyName: 'the key name (kid) is not a text of 1 to 512 characters',
  issuer: 'the issuer (iss) is not configured',
  audience: 'the audience (aud) is not the configured one',
  expiryForm: 'the expiry (exp) is missing or not a time',
  issuedAtForm: 'the time of issue (iat) is missing or not a time',
  notBeforeForm: 'the not-before claim (nbf) is not a number',
  expired: 'the token has expired',
  issuedInFuture: 'the time of issue (iat) is in the future',
  lifetime: 'the lifetime from iat to exp is longer than the configured maximum',
  notBefore: 'the token is not valid yet (nbf)',
  discriminator: 'the discriminator claim does not have the configured value',
  requiredClaim: 'a required claim does not have the configured value',
  replayed: 'the token was used before',
  subject: 'the subject claim is missing, empty or not a text',
  subjectLength: `the subject is longer than ${SUBJECT_CHARACTERS_MAX} characters`,
  roles: 'the roles claim is neither a text nor a list of texts',
  rolesCount: `the roles claim has more than ${ROLES_MAX} roles`,
  email: 'the email claim is not a text',
  key: 'the issuer has no key of that name (kid) and algorithm',
  signature: 'the signature is invalid for this key',
  guestForm: 'the guest token has another form or length',
  guestKey: 'the guest token names a key that this Environment does not have',
  guestSignature: 'the guest token was not signed by this Environment',
} as const
export type TokenCheck = keyof typeof TOKEN_REJECTIONS

/** Thrown where a token fails a check. Each verifier maps it to a Fault of its surface. */
export class TokenRejection extends Error {
  readonly check: TokenCheck

  constructor(check: TokenCheck) {
    super(TOKEN_REJECTIONS[check])
    this.name = 'TokenRejection'
    this.check = check
  }
}

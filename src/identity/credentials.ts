/**
 * Operator credentials: how codes and tokens are made, recognized and digested. A copy of the
 * database without the pepper can verify none of them (contract/wire.md, Secrets).
 */
import { assert } from '../errors/assert.ts'
import { digestEquals, randomSecret, secretDigest } from '../system/digests.ts'
import type { System } from '../system/system.ts'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { decodeUlid, encodeUlid, type SessionId } from '../value/ids.ts'
import { Secret } from '../value/secret.ts'

const ACCESS_PREFIX = 'rk_at_v1_'
const REFRESH_PREFIX = 'rk_rt_v1_'
const INVITATION_PREFIX = 'rk_inv_v1_'
const RANDOM = /^[A-Za-z0-9_-]{43}$/
/** Canonical base64url of 32 bytes: two bits of the last character are zero. */
const ACCESS = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
const REFRESH = /^[A-Za-z0-9_-]{96}$/

/** Layout of a refresh token's 72 bytes. */
const GENERATION_AT = 16
const ENTROPY_AT = 24
const MAC_AT = 56
const MAC_BYTES = 16
/** Random bytes of an access token; the MAC of them follows. */
const ACCESS_ENTROPY_BYTES = 16

/** Access tokens of logins, which come first since most are, and of derived sessions. */
const ACCESS_KINDS = ['access-token', 'derived-token'] as const
export type AccessKind = (typeof ACCESS_KINDS)[number]

export interface IssuedSecret {
  readonly secret: Secret
  readonly digest: Buffer
}

export interface RefreshToken {
  readonly sessionId: SessionId
  readonly generation: bigint
  readonly digest: Buffer
}

export class Credentials {
  readonly #pepper: Uint8Array
  readonly #source: Pick<System, 'randomBytes'>

  /** `pepper` has 32 bytes. */
  constructor(pepper: Uint8Array, source: Pick<System, 'randomBytes'>) {
    assert(pepper.length === 32, 'the identity pepper has 32 bytes')
    this.#pepper = Uint8Array.from(pepper)
    this.#source = source
  }

  issueInvitationCode(): IssuedSecret {
    const text = randomSecret(this.#source, INVITATION_PREFIX)
    return { secret: new Secret(text), digest: secretDigest(this.#pepper, 'invitation', text) }
  }

  /**
   * Issues a token of 16 random bytes and their MAC, which exposes forgeries without a look-up. A
   * derived session has tokens with a MAC of their own: a server of a version without such
   * sessions, on the same database, would accept it for all rights of the operator.
   */
  issueAccessToken(kind: AccessKind = 'access-token'): IssuedSecret {
    const bytes = new Uint8Array(ACCESS_ENTROPY_BYTES + MAC_BYTES)
    const entropy = this.#source.randomBytes(ACCESS_ENTROPY_BYTES)
    bytes.set(entropy)
    bytes.set(this.#mac(`${kind}-mac`, entropy), ACCESS_ENTROPY_BYTES)
    const text = ACCESS_PREFIX + encodeBase64Url(bytes)
    return { secret: new Secret(text), digest: secretDigest(this.#pepper, kind, text) }
  }

  /** Returns the digest of a code, null for a text of another form. */
  digestInvitationCode(code: string): Buffer | null {
    const text = code.slice(INVITATION_PREFIX.length)
    if (!code.startsWith(INVITATION_PREFIX) || !RANDOM.test(text)) return null
    return secretDigest(this.#pepper, 'invitation', code)
  }

  /** Returns the digest of an external token by what its signature covers: that alone is fixed. */
  digestExternalToken(token: string): Buffer {
    const signed = token.slice(0, token.lastIndexOf('.'))
    return secretDigest(this.#pepper, 'external-token', signed)
  }

  /** Returns the digest of a token of `issueAccessToken`, null for any other text. */
  recognizeAccessToken(token: string): Buffer | null {
    const kind = this.kindOf(token)
    return kind === null ? null : secretDigest(this.#pepper, kind, token)
  }

  /** Returns the kind of a token of `issueAccessToken`, null for any other text. */
  kindOf(token: string): AccessKind | null {
    const text = token.slice(ACCESS_PREFIX.length)
    if (!token.startsWith(ACCESS_PREFIX) || !ACCESS.test(text)) return null
    const bytes = decodeBase64Url(text)
    const kind = ACCESS_KINDS.find((each) => {
      const mac = this.#mac(`${each}-mac`, bytes.subarray(0, ACCESS_ENTROPY_BYTES))
      return digestEquals(mac, bytes.subarray(ACCESS_ENTROPY_BYTES))
    })
    return kind ?? null
  }

  /** Issues a token of session, generation, entropy and a MAC of the three. */
  issueRefreshToken(sessionId: SessionId, generation: bigint): IssuedSecret {
    const bytes = new Uint8Array(MAC_AT + MAC_BYTES)
    bytes.set(decodeUlid(sessionId.slice('ops_'.length)))
    new DataView(bytes.buffer).setBigUint64(GENERATION_AT, generation)
    bytes.set(this.#source.randomBytes(MAC_AT - ENTROPY_AT), ENTROPY_AT)
    bytes.set(this.#mac('refresh-token-mac', bytes.subarray(0, MAC_AT)), MAC_AT)
    const text = REFRESH_PREFIX + encodeBase64Url(bytes)
    return {
      secret: new Secret(text),
      digest: secretDigest(this.#pepper, 'refresh-token', text),
    }
  }

  /** Parses a token whose MAC proves that this server issued it; null for any other. */
  recognizeRefreshToken(token: string): RefreshToken | null {
    const text = token.slice(REFRESH_PREFIX.length)
    if (!token.startsWith(REFRESH_PREFIX) || !REFRESH.test(text)) return null
    const bytes = decodeBase64Url(text)
    const mac = this.#mac('refresh-token-mac', bytes.subarray(0, MAC_AT))
    if (!digestEquals(mac, bytes.subarray(MAC_AT))) return null
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const millis = view.getUint16(0) * 2 ** 32 + view.getUint32(2)
    return {
      sessionId: `ops_${encodeUlid(millis, bytes.subarray(6, GENERATION_AT))}` as SessionId,
      generation: view.getBigUint64(GENERATION_AT),
      digest: secretDigest(this.#pepper, 'refresh-token', token),
    }
  }

  #mac(purpose: `${AccessKind}-mac` | 'refresh-token-mac', bytes: Uint8Array): Uint8Array {
    return secretDigest(this.#pepper, purpose, encodeBase64Url(bytes)).subarray(0, MAC_BYTES)
  }
}

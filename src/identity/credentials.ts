/**
 * Operator credentials: how codes and tokens are made, recognised and digested. Whoever holds the
 * database without the pepper can verify none of them (wire decisions, Secrets).
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
const REFRESH = /^[A-Za-z0-9_-]{96}$/

/** Layout of a refresh token's 72 bytes. */
const GENERATION_AT = 16
const ENTROPY_AT = 24
const MAC_AT = 56
const MAC_BYTES = 16

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
    return this.#issue('invitation', INVITATION_PREFIX)
  }

  issueAccessToken(): IssuedSecret {
    return this.#issue('access-token', ACCESS_PREFIX)
  }

  /** null for a text that no code of ours looks like. */
  digestInvitationCode(code: string): Buffer | null {
    return this.#digest('invitation', INVITATION_PREFIX, code)
  }

  /** null for a text that no access token of ours looks like. */
  digestAccessToken(token: string): Buffer | null {
    return this.#digest('access-token', ACCESS_PREFIX, token)
  }

  /** Session, generation, entropy and a MAC of the three. */
  issueRefreshToken(sessionId: SessionId, generation: bigint): IssuedSecret {
    const bytes = new Uint8Array(MAC_AT + MAC_BYTES)
    bytes.set(decodeUlid(sessionId.slice('ops_'.length)))
    new DataView(bytes.buffer).setBigUint64(GENERATION_AT, generation)
    bytes.set(this.#source.randomBytes(MAC_AT - ENTROPY_AT), ENTROPY_AT)
    bytes.set(this.#mac(bytes.subarray(0, MAC_AT)), MAC_AT)
    const text = REFRESH_PREFIX + encodeBase64Url(bytes)
    return {
      secret: new Secret(text),
      digest: secretDigest(this.#pepper, 'refresh-token', text),
    }
  }

  /** null unless this server made it: its MAC proves that, whatever became of it since. */
  recognizeRefreshToken(token: string): RefreshToken | null {
    const text = token.slice(REFRESH_PREFIX.length)
    if (!token.startsWith(REFRESH_PREFIX) || !REFRESH.test(text)) return null
    const bytes = decodeBase64Url(text)
    if (!digestEquals(this.#mac(bytes.subarray(0, MAC_AT)), bytes.subarray(MAC_AT))) return null
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const millis = view.getUint16(0) * 2 ** 32 + view.getUint32(2)
    return {
      sessionId: `ops_${encodeUlid(millis, bytes.subarray(6, GENERATION_AT))}` as SessionId,
      generation: view.getBigUint64(GENERATION_AT),
      digest: secretDigest(this.#pepper, 'refresh-token', token),
    }
  }

  #mac(bytes: Uint8Array): Uint8Array {
    const digest = secretDigest(this.#pepper, 'refresh-token-mac', encodeBase64Url(bytes))
    return digest.subarray(0, MAC_BYTES)
  }

  #issue(purpose: 'invitation' | 'access-token', prefix: string): IssuedSecret {
    const text = randomSecret(this.#source, prefix)
    return { secret: new Secret(text), digest: secretDigest(this.#pepper, purpose, text) }
  }

  #digest(purpose: 'invitation' | 'access-token', prefix: string, text: string): Buffer | null {
    if (!text.startsWith(prefix) || !RANDOM.test(text.slice(prefix.length))) return null
    return secretDigest(this.#pepper, purpose, text)
  }
}

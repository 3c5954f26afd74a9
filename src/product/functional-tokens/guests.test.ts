import { beforeEach, describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { TOKEN_REJECTIONS, type TokenCheck } from '../../identity/jwt/rejections.ts'
import { Keyring } from '../../storage/keyring.ts'
import { TestSystem } from '../../system/system.ts'
import type { EnvironmentId } from '../../value/ids.ts'
import { FunctionalTokens } from './tokens.ts'

const ENVIRONMENT = `env_${'0'.repeat(25)}1` as EnvironmentId
const OTHER = `env_${'0'.repeat(25)}2` as EnvironmentId
const REJECTED = 'FUNCTIONAL_TOKEN_INVALID'
let system: TestSystem
let tokens: FunctionalTokens

beforeEach(() => {
  system = new TestSystem()
  tokens = tokensWith({})
})

function keyring(active = 'first', environmentId = ENVIRONMENT, ids = ['first', 'second']) {
  const keys = ids.map((id, i) => ({
    id,
    key: new Uint8Array(32).fill(i + 1),
    createdAtMicros: 0n,
  }))
  return new Keyring({ version: 1, keys, active }, environmentId)
}

function tokensWith(given: Partial<ConstructorParameters<typeof FunctionalTokens>[0]>) {
  const defaults = { providers: new Map(), keyring: keyring(), environmentId: ENVIRONMENT, system }
  return new FunctionalTokens({ ...defaults, ...given })
}

async function outcome(token: string, verifier = tokens): Promise<unknown> {
  try {
    return JSON.parse((await verifier.verify(token)).identityText)
  } catch (error) {
    return isFault(error) ? error.code : String(error)
  }
}

/** Returns the detail of the rejection. */
async function reason(token: string, verifier = tokens): Promise<unknown> {
  try {
    await verifier.verify(token)
    return 'accepted'
  } catch (error) {
    return isFault(error, REJECTED) ? error.detail : String(error)
  }
}

const rejectedBy = (check: TokenCheck) => `functional token: ${TOKEN_REJECTIONS[check]}`

describe('a guest token', () => {
  const entropy = new Uint8Array(10).fill(7)
  const issue = (
    given: { entropy?: Uint8Array; expiresInSeconds?: number } = {},
    verifier = tokens,
  ) =>
    verifier.issueGuest({ entropy, nowMicros: system.nowMicros(), expiresInSeconds: 60, ...given })

  it('a guest token is accepted until it expires', async () => {
    const token = issue()
    expect(token).toMatch(/^rk_gst_v1_[A-Za-z0-9_-]+$/)
    const guest = await outcome(token)
    expect(guest).toEqual({
      kind: 'guest',
      subject: expect.stringMatching(/^gst_[0-7][0-9A-HJKMNP-TV-Z]{25}$/),
      issuer: ENVIRONMENT,
    })
    system.advance(59_999)
    expect(await outcome(token, tokensWith({}))).toEqual(guest)
    system.advance(1)
    for (const verifier of [tokens, tokensWith({})]) {
      expect(await reason(token, verifier)).toBe(rejectedBy('expired'))
    }
  })

  it('a guest token is equal for equal entropy and differs for other entropy', async () => {
    expect(issue()).toBe(issue())
    const different = issue({ entropy: new Uint8Array(10).fill(8) })
    expect(await outcome(issue())).not.toEqual(await outcome(different))
  })

  it('a guest token of another Environment is rejected, even under the same keys', async () => {
    const foreign = tokensWith({ keyring: keyring('first', OTHER), environmentId: OTHER })
    expect(await reason(issue({}, foreign))).toBe(rejectedBy('guestSignature'))
    expect(await reason(issue(), foreign)).toBe(rejectedBy('guestSignature'))
  })

  it('a guest token is valid after a rotation, but not after its key was removed', async () => {
    const token = issue()
    const rotated = tokensWith({ keyring: keyring('second') })
    expect(await outcome(token, rotated)).toMatchObject({ kind: 'guest' })
    expect(await outcome(issue({}, rotated))).toMatchObject({ kind: 'guest' })
    const dropped = tokensWith({ keyring: keyring('third', ENVIRONMENT, ['third']) })
    expect(await reason(token, dropped)).toBe(rejectedBy('guestKey'))
  })

  it('a guest token is rejected if one bit of it or its length differs', async () => {
    const token = issue()
    const bytes = Buffer.from(token.slice('rk_gst_v1_'.length), 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      const check = bit < 8 ? 'guestForm' : bit < 6 * 8 ? 'guestKey' : 'guestSignature'
      const detail = await reason(`rk_gst_v1_${changed.toString('base64url')}`)
      expect(detail).toBe(rejectedBy(check))
    }
    for (const text of ['', 'A', 'AA', bytes.subarray(1).toString('base64url')]) {
      expect(await reason(`rk_gst_v1_${text}`)).toBe(rejectedBy('guestForm'))
    }
    for (const text of [`${token}=`, `${token}A`, ` ${token}`, token.toUpperCase()]) {
      expect(await outcome(text)).toBe(REJECTED)
    }
  })
})

import { describe, expect, it } from 'vitest'
import { makeKey } from '../../../testing/providers/identity-providers.ts'
import { SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { readKeySet } from './key-sets.ts'

describe('a published key', () => {
  const count = async (published: readonly unknown[], algorithm: SignatureAlgorithm = 'ES256') => {
    const document = new TextEncoder().encode(JSON.stringify({ keys: published }))
    try {
      return (await readKeySet(document, [algorithm])).length
    } catch (error) {
      return String(error)
    }
  }

  it('a published key of the algorithm counts, others do not', { tags: ['slow'] }, async () => {
    const published = await Promise.all(
      SIGNATURE_ALGORITHMS.map(async (algorithm) => {
        return (await makeKey(algorithm, algorithm)).jwk
      }),
    )
    for (const algorithm of SIGNATURE_ALGORITHMS) {
      expect(await count(published, algorithm)).toBe(1)
    }
  })

  it('a published key without use and alg counts', async () => {
    const { jwk } = await makeKey('k')
    expect(await count([{ ...jwk, use: undefined, alg: undefined }])).toBe(1)
    expect(await count([{ ...jwk, key_ops: ['verify'], x5c: ['x'], x5u: 'x' }])).toBe(1)
  })

  it('a published key for another use does not count', async () => {
    const { jwk } = await makeKey('k')
    for (const given of [
      { use: 'enc' },
      { use: null },
      { key_ops: ['sign'] },
      { key_ops: 'verify' },
      { alg: 'ES384' },
      { alg: 'RS256' },
      { alg: null },
      { kty: 'RSA' },
      { crv: 'P-384' },
      { crv: undefined },
      { x: 'AAAA' },
      { x: undefined },
      { d: 'AAAA' },
      { kid: 7 },
    ]) {
      expect(await count([{ ...jwk, ...given }])).toBe(0)
    }
  })

  it('a published key that is symmetric does not count', async () => {
    expect(await count([{ kty: 'oct', k: 'AAAA', kid: 'k' }])).toBe(0)
  })

  it('a published key of RSA needs 2,048 bits and an exponent', async () => {
    const { jwk } = await makeKey('k', 'RS256')
    expect(await count([jwk], 'RS256')).toBe(1)
    const bytes = Buffer.from(jwk.n!, 'base64url')
    const short = Buffer.concat([Buffer.of(1), bytes.subarray(1)]).toString('base64url')
    for (const given of [
      { n: short },
      { n: bytes.subarray(128).toString('base64url') },
      { n: `AAAA${jwk.n}` },
      { n: `${jwk.n}=` },
      { n: Buffer.alloc(1025, 255).toString('base64url') },
      { e: 'AQ' },
      { e: '' },
      { e: undefined },
    ]) {
      expect(await count([{ ...jwk, ...given }], 'RS256')).toBe(0)
    }
  })

  it('a published key with a duplicate name invalidates the set', async () => {
    const [a, b] = [await makeKey('same'), await makeKey('same')]
    expect(await count([a.jwk, b.jwk])).toContain('each kid once')
    expect(await count([a.jwk, { ...b.jwk, use: 'enc' }])).toContain('each kid once')
  })

  it('a set of more than 64 published keys is rejected', async () => {
    const { jwk } = await makeKey('k')
    const published = Array.from({ length: 65 }, (_, i) => ({ ...jwk, kid: `k${i}` }))
    expect(await count(published.slice(1))).toBe(64)
    expect(await count(published)).toContain('64 keys')
  })
})

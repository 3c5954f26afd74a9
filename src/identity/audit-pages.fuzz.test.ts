/**
 * Fuzzes cursors of the audit, also with valid checksums: each is rejected, or returns records
 * before its position.
 */
import { afterAll, beforeAll, expect } from 'vitest'
import { fuzz, mutatedBytes, mutatedText, type Random } from '../../testing/fuzzing/fuzz.ts'
import { type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { authenticateLogin, firstOwner } from '../../testing/operators.ts'
import { sha256 } from '../system/digests.ts'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { ValidationError } from '../value/validation-error.ts'
import type { Actor } from './actor.ts'
import { type AuditPage, readAuditPage } from './audit-pages.ts'

const EVERYTHING = { actor: null, operation: null, fromMicros: 0n, toMicros: 2n ** 63n - 1n }

let t: TestIdentity
let owner: Actor
let cursor: string

function page(after: string | null): Promise<AuditPage> {
  return readAuditPage(t.identity, owner, { ...EVERYTHING, after, limit: 2 })
}

beforeAll(async () => {
  t = await testIdentity()
  owner = await authenticateLogin(t, await firstOwner(t))
  await t.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     select 'aud_' || lpad(i::text, 26, '0'), 'session.refresh', 'succeeded', i
       from generate_series(1, 20) as i`,
  )
  cursor = (await page(null)).next!
})
afterAll(() => t.dispose())

/** Replaces the last eight bytes by a valid checksum. */
function sealed(bytes: Uint8Array): Uint8Array {
  const position = bytes.slice(0, 24)
  return Buffer.concat([position, sha256('service/audit-cursor/v1\0', position).subarray(0, 8)])
}

function changed(random: Random): string {
  if (random.chance(2)) return mutatedText(random, cursor)
  const bytes = mutatedBytes(random, decodeBase64Url(cursor))
  return encodeBase64Url(random.chance(8) ? sealed(bytes) : bytes)
}

fuzz('a changed cursor is rejected, or is a position in the audit', async (random) => {
  const text = changed(random)
  try {
    const { items } = await page(text)
    if (items.length > 2) expect.fail('more than was asked for')
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
})

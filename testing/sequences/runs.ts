/** Runs sequences and races: few in every test run, many in the long one. */

import { expect } from 'vitest'
import { refresh, revokeSession } from '../../src/identity/sessions.ts'
import { rejectionCode, type TestIdentity } from '../identity.ts'
import { authenticateLogin, operatorWith } from '../operators.ts'
import { fc } from '../properties.ts'
import type { ExternalLogins } from '../providers/external-logins.ts'
import { checkEnd, newSequence, sequences } from './batches.ts'

/** Throws with the seed and the shortest sequence that fails. */
export async function runSequences(
  fixture: ExternalLogins,
  count: number,
  seed: number,
): Promise<void> {
  const owner = await fixture.identity.authenticate(fixture.owner.accessToken)
  const servers = [fixture.identity, fixture.another()]
  const property = fc.asyncProperty(sequences, async (commands) => {
    const sequence = await newSequence(fixture, servers, owner)
    await fc.asyncModelRun(() => ({ model: {}, real: sequence }), commands)
    await checkEnd(sequence)
  })
  await fc.assert(property, { seed, numRuns: count, endOnFailure: true })
}

/** Races refreshes against revocations: after the revocation's response no token is valid. */
export async function raceRefreshAndRevocation(
  fixture: TestIdentity,
  rounds: number,
): Promise<void> {
  const other = fixture.another()
  for (let round = 0; round < rounds; round++) {
    const login = await operatorWith(fixture)
    const actor = await authenticateLogin(fixture, login)
    const { sessionId } = login.session
    const refreshToken = login.refreshToken!.reveal()
    const refreshing = refresh(round % 2 === 0 ? fixture.identity : other, {
      refreshToken,
      requestId: null,
    }).catch(() => null)
    const revoking = revokeSession(other, actor, { sessionId, requestId: null })
    await revoking
    const first = await rejectionCode(authenticateLogin(fixture, login))
    const refreshed = await refreshing
    const logins = refreshed === null ? [login] : [login, refreshed]
    expect(first).toBe('PLATFORM_AUTHENTICATION_FAILED')
    for (const each of logins) {
      expect(await rejectionCode(authenticateLogin(fixture, each))).toBe(
        'PLATFORM_AUTHENTICATION_FAILED',
      )
      const again = { refreshToken: each.refreshToken!.reveal(), requestId: null }
      expect(await rejectionCode(refresh(fixture.identity, again))).toBe(
        'PLATFORM_AUTHENTICATION_FAILED',
      )
    }
  }
  const records = (await fixture.audit()).filter((operation) => operation === 'session.revoke')
  expect(records).toHaveLength(rounds)
}

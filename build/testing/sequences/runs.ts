/** Runs of sequences and races, as many as a test wants: few in every run, many in the long one. */

import { expect } from 'vitest'
import { refresh, revokeSession } from '../../../src/identity/sessions.ts'
import type { TestIdentity } from '../identity.ts'
import { actorOf, codeOf, operatorWith } from '../operators.ts'
import { fc } from '../properties.ts'
import type { ExternalLogins } from '../providers/external-logins.ts'
import { checkEnd, newWorld, sequences } from './batches.ts'

/** Throws with the seed and the shortest sequence that fails. */
export async function runSequences(t: ExternalLogins, count: number, seed: number): Promise<void> {
  const owner = await t.identity.authenticate(t.owner.accessToken)
  const servers = [t.identity, t.another()]
  const property = fc.asyncProperty(sequences, async (commands) => {
    const world = await newWorld(t, servers, owner)
    await fc.asyncModelRun(() => ({ model: {}, real: world }), commands)
    await checkEnd(world)
  })
  await fc.assert(property, { seed, numRuns: count, endOnFailure: true })
}

/** A refresh and a revocation at once: no token works behind the answer to the revocation. */
export async function raceRefreshAndRevocation(t: TestIdentity, rounds: number): Promise<void> {
  const other = t.another()
  for (let round = 0; round < rounds; round++) {
    const login = await operatorWith(t)
    const actor = await actorOf(t, login)
    const { sessionId } = login.session
    const refreshToken = login.refreshToken!.reveal()
    const refreshing = refresh(round % 2 === 0 ? t.identity : other, {
      refreshToken,
      requestId: null,
    }).catch(() => null)
    const revoking = revokeSession(other, actor, { sessionId, requestId: null })
    await revoking
    const first = await codeOf(actorOf(t, login))
    const refreshed = await refreshing
    const logins = refreshed === null ? [login] : [login, refreshed]
    expect(first).toBe('PLATFORM_AUTHENTICATION_FAILED')
    for (const each of logins) {
      expect(await codeOf(actorOf(t, each))).toBe('PLATFORM_AUTHENTICATION_FAILED')
      const again = { refreshToken: each.refreshToken!.reveal(), requestId: null }
      expect(await codeOf(refresh(t.identity, again))).toBe('PLATFORM_AUTHENTICATION_FAILED')
    }
  }
  const records = (await t.audit()).filter((operation) => operation === 'session.revoke')
  expect(records).toHaveLength(rounds)
}

import { afterEach, beforeEach, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { externalLogins } from '../../testing/providers/external-logins.ts'
import { SEED } from '../../testing/seeds.ts'
import { raceRefreshAndRevocation, runSequences } from '../../testing/sequences/runs.ts'

let t: TestIdentity

beforeEach(async () => {
  t = await testIdentity()
})

afterEach(async () => {
  await t.dispose()
})

test(`2,000 runs of eight concurrent operations are serializable (SVC_SEED=${SEED})`, async () => {
  const external = await externalLogins()
  try {
    await runSequences(external, 2_000, SEED)
  } finally {
    await external.dispose()
  }
}, 1_800_000)

test('no token is valid after a revocation, in 1,000 races with a refresh', async () => {
  await raceRefreshAndRevocation(t, 1_000)
}, 600_000)

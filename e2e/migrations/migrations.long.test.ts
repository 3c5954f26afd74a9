/**
 * 1,000,000 documents that are migrated under 1,000 calls a second, while the server is killed
 * every 20 s: each exactly once, calls at most twice as slow, and at least 0.3 of the rate at which
 * Mutations write as many documents. SVC_MIGRATED_DOCUMENTS makes it smaller.
 */
import { expect, test } from 'vitest'
import { runCampaign } from './campaign.ts'

const DOCUMENTS = Number(process.env.SVC_MIGRATED_DOCUMENTS ?? 1_000_000)

test('calls stay fast beside a large migration, which makes progress', async () => {
  const figures = await runCampaign({
    documents: DOCUMENTS,
    callsPerSecond: DOCUMENTS < 1_000_000 ? 200 : 1_000,
    killEveryMillis: DOCUMENTS < 1_000_000 ? 10_000 : 20_000,
    killsMax: 1_000,
    quietSeconds: 10,
    pollMillis: 2_000,
  })
  console.info(JSON.stringify(figures))
  expect(figures.kills).toBeGreaterThan(0)
  expect(figures.busyP99).toBeLessThanOrEqual(2 * figures.quietP99)
  expect(figures.migrationRate).toBeGreaterThanOrEqual(0.3 * figures.batchRate)
}, 7_200_000)

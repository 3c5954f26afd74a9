/**
 * 100,000 pieces of scheduled work over 1,000 due times, and a Cron every second, on servers that
 * are killed every 5 s: every Mutation runs exactly once, every Action at most once, none early and
 * none never.
 */
import { test } from 'vitest'
import { runCampaign } from '../../../testing/dying/scheduled-campaign.ts'
import { SEED } from '../../../testing/seeds.ts'

test.each(['SQLite', 'PostgreSQL'] as const)(
  'killed servers lose and repeat nothing of 100,000 pieces: %s',
  async (kind) => {
    await runCampaign({
      kind,
      count: 50_000,
      times: 1_000,
      spreadMillis: 60_000,
      killsMax: 1_000,
      nextKillMillis: () => 5_000,
      label: `SVC_SEED=${SEED}`,
    })
  },
  1_800_000,
)

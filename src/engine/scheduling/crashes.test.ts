/**
 * Scheduled work across servers that are killed: nothing is lost, no Mutation runs twice.
 *
 * @module-tag slow
 */
import { test } from 'vitest'
import { runCampaign } from '../../../testing/dying/scheduled-campaign.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { SEED } from '../../../testing/seeds.ts'

test.each(['SQLite', 'PostgreSQL'] as const)(
  'killed servers lose and repeat nothing: %s',
  async (kind) => {
    const random = new Random(SEED)
    await runCampaign({
      kind,
      count: 150,
      times: 150,
      spreadMillis: 500,
      killsMax: 5,
      nextKillMillis: () => 10 + random.below(150),
      label: `SVC_SEED=${SEED}`,
    })
  },
  600_000,
)

/** A migration of 200,000 documents on servers that are killed again and again. */
import { expect, test } from 'vitest'
import { runMigrationCampaign } from '../../../testing/dying/migration-campaign.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { STORES } from '../../../testing/migrations/migration-bench.ts'
import { SEED } from '../../../testing/seeds.ts'

test.each(STORES)(
  'killed servers skip and repeat none of 200,000 documents: %s',
  async (kind) => {
    const random = new Random(SEED)
    const kills = await runMigrationCampaign({
      kind,
      count: 200_000,
      killsMax: 100,
      nextKillMillis: () => 100 + random.below(2_000),
      label: `SVC_SEED=${SEED}`,
    })
    expect(kills).toBeGreaterThan(5)
  },
  1_800_000,
)

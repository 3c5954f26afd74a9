/**
 * A migration across servers that are killed: each document is passed exactly once.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { runMigrationCampaign } from '../../../testing/dying/migration-campaign.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { STORES } from '../../../testing/migrations/migration-bench.ts'
import { SEED } from '../../../testing/seeds.ts'

test.each(STORES)(
  'killed servers skip and repeat no document: %s',
  async (kind) => {
    const random = new Random(SEED)
    const kills = await runMigrationCampaign({
      kind,
      count: 4_000,
      killsMax: 6,
      nextKillMillis: () => random.below(120),
      label: `SVC_SEED=${SEED}`,
    })
    expect(kills).toBeGreaterThan(0)
  },
  600_000,
)

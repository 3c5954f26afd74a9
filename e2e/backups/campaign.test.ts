/** A server that loses its disk is restored as its clients know it, with a few losses. */
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { runCampaign } from './campaign/campaign.ts'

test.each([
  ['sqlite', 'bucket'],
  ['postgres', 'directory'],
] as const)(
  `a lost server with %s is restored from a %s as its clients know it (SVC_SEED=${SEED})`,
  { timeout: 1_800_000 },
  async (documents, target) => {
    const figures = await runCampaign({
      seed: SEED,
      documents,
      target,
      callsPerSecond: 150,
      rounds: 2,
      pauseMillisMax: 700,
      times: 2,
    })
    console.info(JSON.stringify(figures))
    expect(figures.violations).toEqual([])
    expect([figures.rounds, figures.times]).toEqual([2, 2])
  },
)

/**
 * A server that loses its disk is restored as its clients know it, with a few losses: the disk of
 * the one with SQLite also after a restore, and that of the other once.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { runCampaign } from './campaign/campaign.ts'

test.each([
  ['sqlite', 'bucket', 2],
  ['postgres', 'directory', 1],
] as const)(
  `a lost server with %s is restored from a %s as its clients know it (SVC_SEED=${SEED})`,
  { timeout: 1_800_000 },
  async (documents, target, rounds) => {
    const figures = await runCampaign({
      seed: SEED,
      documents,
      target,
      callsPerSecond: 75,
      rounds,
      pauseMillisMax: 700,
      times: 1,
    })
    console.info(JSON.stringify(figures))
    expect(figures.violations).toEqual([])
    expect([figures.rounds, figures.times]).toEqual([rounds, 1])
  },
)

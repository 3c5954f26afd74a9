/**
 * 100 losses of the disk on each store under 1,000 Mutations a second, uploads, changes of the
 * configuration and logins, with kills of the server and of the target, and restores to 20 random
 * times. SVC_CAMPAIGN_LIVES makes it smaller: an installation is lost ten times.
 */
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { runCampaign } from './campaign/campaign.ts'
import type { Figures } from './campaign/figures.ts'

const LIVES = Number(process.env.SVC_CAMPAIGN_LIVES ?? 10)
const ROUNDS = 10
const TIMES = 2

test.each(['sqlite', 'postgres'] as const)(
  `each lost server with documents in %s is restored as its clients know it (SVC_SEED=${SEED})`,
  { timeout: 4 * 3_600_000 },
  async (documents) => {
    const all: Figures[] = []
    for (let life = 0; life < LIVES; life++) {
      const seed = SEED + life
      const figures = await runCampaign({
        seed,
        documents,
        target: life % 2 === 0 ? 'bucket' : 'directory',
        callsPerSecond: 1_000,
        rounds: ROUNDS,
        pauseMillisMax: 3_000,
        times: TIMES,
      })
      all.push(figures)
      console.info(JSON.stringify({ seed, ...figures }))
      expect(figures.violations).toEqual([])
    }
    const sum = (name: 'calls' | 'files' | 'rounds' | 'times') =>
      all.reduce((total, figures) => total + figures[name], 0)
    const max = (name: 'lostMillis' | 'otherLostMillis') =>
      Math.max(0, ...all.flatMap((figures) => figures[name]))
    console.info(
      `${documents}: ${sum('rounds')} losses, ${sum('times')} times, ${sum('calls')} calls, ` +
        `${sum('files')} files; lost at most ${max('lostMillis')} ms, beside an outage of the ` +
        `target or before the first whole backup ${max('otherLostMillis')} ms`,
    )
  },
)

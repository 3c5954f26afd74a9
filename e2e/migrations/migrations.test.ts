/**
 * A migration of the compiled server: each document once, although the server is killed.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { runCampaign } from './campaign.ts'

test('killed servers skip and repeat no document, and no call fails', async () => {
  const figures = await runCampaign({
    documents: 6_000,
    callsPerSecond: 50,
    killEveryMillis: 0,
    killsMax: 2,
    quietSeconds: 1,
    pollMillis: 100,
  })
  console.info(JSON.stringify(figures))
  expect(figures.kills).toBe(2)
}, 900_000)

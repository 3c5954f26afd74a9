/**
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { RandomSaves } from '../../../testing/development/random-saves.ts'
import { SEED } from '../../../testing/seeds.ts'

const SAVES = 8

test(`after ${SAVES} random saves the last valid state answers, SVC_SEED=${SEED}`, async () => {
  const saves = new RandomSaves(SEED)
  try {
    await saves.dev.start()
    for (let i = 0; i < SAVES; i++) await saves.save()
    await saves.dev.stop()
    // The kernel removes a killed process asynchronously.
    await expect.poll(() => saves.footprint().children, { timeout: 60_000 }).toBe(0)
  } finally {
    await saves.dev.dispose()
  }
})

import { expect, test } from 'vitest'
import { RandomSaves } from '../../../testing/development/random-saves.ts'
import { SEED } from '../../../testing/seeds.ts'

const SAVES = 1_000
/** Number of saves after which the caches of code and documents are full. */
const WARM_UP = 300
const GROWTH_BYTES_MAX = 64 * 1024 * 1024
/** Runners of two Releases and the spare one, while one Release replaces the other. */
const CHILDREN_MAX = 6

test(`${SAVES} random saves leave nothing behind, SVC_SEED=${SEED}`, { timeout: 0 }, async () => {
  const saves = new RandomSaves(SEED)
  try {
    await saves.dev.start()
    for (let i = 0; i < WARM_UP; i++) await saves.save()
    const before = saves.footprint()
    for (let i = WARM_UP; i < SAVES; i++) {
      await saves.save()
      expect(saves.footprint().children).toBeLessThanOrEqual(CHILDREN_MAX)
    }
    Bun.gc(true)
    const after = saves.footprint()
    const [from, to] = [before, after].map((footprint) => JSON.stringify(footprint))
    process.stdout.write(`after ${WARM_UP} saves ${from}, after ${SAVES} ${to}\n`)
    expect(after.residentBytes - before.residentBytes).toBeLessThan(GROWTH_BYTES_MAX)
    expect(after.descriptors - before.descriptors).toBeLessThan(32)
    expect(after.artifacts - before.artifacts).toBeLessThan(32)
    await saves.dev.stop()
    expect(saves.footprint().children).toBe(0)
  } finally {
    await saves.dev.dispose()
  }
})

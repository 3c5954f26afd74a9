import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SnapshotsInUse, type SnapshotUse } from './snapshots-in-use.ts'

const SEED = Date.now() % 2 ** 31

test(`the oldest snapshot is that of whoever began first and is not done (seed ${SEED})`, () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('begin' as const), later: fc.nat({ max: 2 }) }),
    fc.record({ kind: fc.constant('end' as const), which: fc.nat() }),
  )
  const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const snapshots = new SnapshotsInUse(7)
    const open: SnapshotUse[] = []
    let durable = 7
    for (const one of steps) {
      if (one.kind === 'begin') {
        durable += one.later
        open.push(snapshots.begin(durable))
      } else if (open.length > 0) {
        const [use] = open.splice(one.which % open.length, 1)
        snapshots.end(use!)
      }
      const oldest = Math.min(durable + 5, ...open.map(({ sequence }) => sequence))
      expect(snapshots.oldest(durable + 5)).toBe(oldest)
    }
  })
  fc.assert(property, { seed: SEED, numRuns: 2_000 })
})

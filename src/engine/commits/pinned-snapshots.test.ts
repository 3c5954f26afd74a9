import { expect, test } from 'vitest'
import { fc } from '../../../build/testing/properties.ts'
import { SEED } from '../../../build/testing/seeds.ts'
import { PinnedSnapshots, type SnapshotPin } from './pinned-snapshots.ts'

test(`the oldest pin is that of the first attempt that has not ended (SVC_SEED=${SEED})`, () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('begin' as const), later: fc.nat({ max: 2 }) }),
    fc.record({ kind: fc.constant('end' as const), which: fc.nat() }),
  )
  const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const snapshots = new PinnedSnapshots(7)
    const open: SnapshotPin[] = []
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

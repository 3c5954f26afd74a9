import { expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { PinnedSnapshots, type SnapshotPin } from './pinned-snapshots.ts'

test(`the oldest pin is that of the first attempt that has not ended (SVC_SEED=${SEED})`, () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('pin' as const), advance: fc.nat({ max: 2 }) }),
    fc.record({ kind: fc.constant('unpin' as const), which: fc.nat() }),
  )
  const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const snapshots = new PinnedSnapshots(7)
    const pins: SnapshotPin[] = []
    let durable = 7
    for (const each of steps) {
      if (each.kind === 'pin') {
        durable += each.advance
        pins.push(snapshots.pin(durable))
      } else if (pins.length > 0) {
        const [pin] = pins.splice(each.which % pins.length, 1)
        snapshots.unpin(pin!)
      }
      const oldest = Math.min(durable + 5, ...pins.map(({ sequence }) => sequence))
      expect(snapshots.oldest(durable + 5)).toBe(oldest)
    }
  })
  fc.assert(property, { seed: SEED, numRuns: inputs(2_000) })
})

test('a wait for a snapshot ends with the last attempt that reads before it', async () => {
  const snapshots = new PinnedSnapshots(7)
  await snapshots.whenReached(9)
  const pins = [snapshots.pin(7), snapshots.pin(8), snapshots.pin(9)]
  const reached: number[] = []
  const waits = [9, 8].map((sequence) =>
    snapshots.whenReached(sequence).then(() => reached.push(sequence)),
  )
  snapshots.unpin(pins[1]!)
  await Promise.resolve()
  expect(reached).toEqual([])
  snapshots.unpin(pins[0]!)
  await Promise.all(waits)
  expect(reached.sort()).toEqual([8, 9])
  snapshots.unpin(pins[2]!)
})

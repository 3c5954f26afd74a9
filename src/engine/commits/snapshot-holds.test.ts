import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import { HOLD_MILLIS_MAX, SnapshotHolds } from './snapshot-holds.ts'

test('the oldest snapshot is held until its release', () => {
  const holds = new SnapshotHolds(new TestSystem())
  expect(holds.oldest()).toBe(Number.POSITIVE_INFINITY)
  const [later, earlier, same] = [9, 4, 4].map((sequence) => holds.hold(sequence))
  expect(holds.oldest()).toBe(4)
  earlier!.release()
  earlier!.release()
  expect(holds.oldest()).toBe(4)
  same!.release()
  expect(holds.oldest()).toBe(9)
  later!.release()
  expect(holds.oldest()).toBe(Number.POSITIVE_INFINITY)
})

test('a hold ends after its longest time', () => {
  const system = new TestSystem()
  const holds = new SnapshotHolds(system)
  holds.hold(4)
  system.advance(HOLD_MILLIS_MAX - 1)
  holds.hold(7)
  expect(holds.oldest()).toBe(4)
  system.advance(1)
  expect(holds.oldest()).toBe(7)
})

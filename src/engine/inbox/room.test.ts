import { expect, test } from 'vitest'
import type { ReleaseId } from '../../value/ids.ts'
import type { ValueObject } from '../../value/values.ts'
import { DeliverySizes, UNFINISHED_CHARACTERS_MAX } from '../scheduled-work/delivery-sizes.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { checkRoom, DELIVERIES_PENDING_MAX } from './room.ts'

const BUSY = expect.objectContaining({ code: 'BUSY' })

function pendingWork(count: number, characters = 0): PendingWork {
  const pending = new PendingWork()
  const deliveries = new DeliverySizes()
  const fields: ValueObject = new Map([
    ['state', 'pending'],
    ['mount', 'main'],
    ['arguments', 'x'.repeat(characters)],
  ])
  deliveries.add(fields, 1)
  pending.add({ byRelease: new Map([['rel_1' as ReleaseId, count]]), finished: 0, deliveries })
  return pending
}

test('a delivery is BUSY beyond the unfinished work that deliveries may cause', () => {
  expect(() => checkRoom(pendingWork(DELIVERIES_PENDING_MAX - 1), 'main')).not.toThrow()
  expect(() => checkRoom(pendingWork(DELIVERIES_PENDING_MAX), 'main')).toThrow(BUSY)
})

test('a delivery to a mount without room is BUSY, and those to others are not', () => {
  const full = pendingWork(1, UNFINISHED_CHARACTERS_MAX)
  expect(() => checkRoom(full, 'main')).toThrow(BUSY)
  expect(() => checkRoom(full, 'other')).not.toThrow()
})

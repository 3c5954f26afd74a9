import { expect, test } from 'vitest'
import type { ReleaseId } from '../../value/ids.ts'
import type { ValueObject } from '../../value/values.ts'
import {
  DeliverySizes,
  FINISHED_CHARACTERS_MAX,
  UNFINISHED_CHARACTERS_MAX,
} from '../scheduled-work/delivery-sizes.ts'
import { PendingWork } from '../scheduled-work/pending-work.ts'
import { checkRoom, checkRoomToRerun, DELIVERIES_PENDING_MAX } from './room.ts'

/** The arguments of one delivery. */
const LONG = 'x'.repeat(1024 * 1024)
const BUSY = expect.objectContaining({ code: 'BUSY' })

function pendingWork(count: number, characters = 0, finishedCharacters = 0): PendingWork {
  const pending = new PendingWork()
  const deliveries = new DeliverySizes()
  const add = (state: string, length: number) => {
    for (let left = length; left > 0; left -= LONG.length) {
      const fields: ValueObject = new Map([
        ['state', state],
        ['mount', 'main'],
        ['arguments', LONG.slice(0, left)],
      ])
      deliveries.add(fields, 1)
    }
  }
  add('pending', characters)
  add('failed', finishedCharacters)
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

test('a delivery that failed is BUSY beyond the unfinished ones of its mount, and of all', () => {
  const full = pendingWork(1, UNFINISHED_CHARACTERS_MAX)
  expect(() => checkRoomToRerun(full, 'main')).toThrow(BUSY)
  expect(() => checkRoomToRerun(full, 'other')).not.toThrow()
  expect(() => checkRoomToRerun(pendingWork(DELIVERIES_PENDING_MAX), 'main')).toThrow(BUSY)
})

test('a delivery that failed runs again while the history of its mount is full', () => {
  const full = pendingWork(1, UNFINISHED_CHARACTERS_MAX - 1, 2 * FINISHED_CHARACTERS_MAX)
  expect(() => checkRoom(full, 'main')).toThrow(BUSY)
  expect(() => checkRoomToRerun(full, 'main')).not.toThrow()
})

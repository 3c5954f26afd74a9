/** The bounds of stored deliveries, which are durable work that strangers may cause. */
import { Fault } from '../../errors/fault.ts'
import { PENDING_MAX } from '../../value/scheduling/scheduled-work.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'

/**
 * Unfinished pieces from which on no delivery is accepted: other services must not use up what the
 * Functions of the Environment may schedule.
 * @limit HTTP mounts: unfinished scheduled work of an Environment while deliveries are accepted
 */
export const DELIVERIES_PENDING_MAX = PENDING_MAX / 2

/** Throws BUSY if no new delivery is accepted now. Repeats need no room. */
export function checkRoom({ count, deliveries }: PendingWork, mount: string): void {
  checkCount(count)
  if (!deliveries.hasRoom(mount)) throw tooLarge(mount)
}

/**
 * Throws BUSY if no delivery that has failed runs again now. Its size leaves those that have ended,
 * so that their bound does not matter.
 */
export function checkRoomToRerun({ count, deliveries }: PendingWork, mount: string): void {
  checkCount(count)
  if (!deliveries.hasRoomToRun(mount)) throw tooLarge(mount)
}

function checkCount(count: number): void {
  if (count < DELIVERIES_PENDING_MAX) return
  throw new Fault('BUSY', { detail: `unfinished work: ${DELIVERIES_PENDING_MAX}` })
}

function tooLarge(mount: string): Fault {
  return new Fault('BUSY', { detail: `the size of the deliveries of the mount ${mount}` })
}

/**
 * Sizes of the deliveries of other services by mount, kept in memory from the changes of commits.
 * Their senders decide how long they are, so their number alone does not bound the disk that they
 * take.
 */
import type { ValueObject } from '../../value/values.ts'
import type { ScheduledChange } from '../commits/read-set.ts'
import { stateOf } from './scheduled-documents.ts'

/**
 * Characters of the stored arguments of the unfinished deliveries of a mount, beyond which it
 * accepts no new one, 256 MiB.
 * @limit HTTP mounts: characters of the unfinished deliveries of one mount
 */
export const UNFINISHED_CHARACTERS_MAX = 256 * 1024 * 1024
/**
 * Characters of the stored arguments of the deliveries of a mount that have ended, 256 MiB. The
 * oldest beyond are deleted before their time; where that cannot keep up, the mount accepts no new
 * one from twice as many.
 * @limit HTTP mounts: characters of the deliveries of one mount that are listed after their end
 */
export const FINISHED_CHARACTERS_MAX = 256 * 1024 * 1024

/** Characters of the stored arguments of the deliveries of one mount. */
export interface MountSize {
  readonly unfinished: number
  /** Characters of those that have ended and are still listed. */
  readonly finished: number
}

/** Texts of fields escape the quotes, so that no argument looks like this. */
const MARK = '"source":"http"'

/** Returns whether the text of scheduled work is that of a delivery, without decoding it. */
export function isDeliveryText(text: string): boolean {
  return text.includes(MARK)
}

const NONE: MountSize = { unfinished: 0, finished: 0 }

export class DeliverySizes {
  readonly #byMount = new Map<string, MountSize>()

  of(mount: string): MountSize {
    return this.#byMount.get(mount) ?? NONE
  }

  /** Returns whether the mount has room for another delivery. */
  hasRoom(mount: string): boolean {
    return this.hasRoomToRun(mount) && this.of(mount).finished < 2 * FINISHED_CHARACTERS_MAX
  }

  /** Returns whether the mount has room for another unfinished delivery that is stored already. */
  hasRoomToRun(mount: string): boolean {
    return this.of(mount).unfinished < UNFINISHED_CHARACTERS_MAX
  }

  /** Characters of all deliveries. */
  get total(): number {
    let total = 0
    for (const { unfinished, finished } of this.#byMount.values()) total += unfinished + finished
    return total
  }

  /** Returns the mounts whose history has more characters than a bound, each with its number. */
  beyond(finishedMax: number): ReadonlyMap<string, number> {
    const found = new Map<string, number>()
    for (const [mount, { finished }] of this.#byMount) {
      if (finished > finishedMax) found.set(mount, finished)
    }
    return found
  }

  reset(): void {
    this.#byMount.clear()
  }

  /** Counts what a commit whose sequence is assigned adds. */
  assign({ after }: ScheduledChange): void {
    this.add(after, 1)
  }

  /** Undoes `assign` for a commit that was rolled back. */
  revert({ after }: ScheduledChange): void {
    this.add(after, -1)
  }

  /** Counts what a durable commit removes. */
  commit({ before }: ScheduledChange): void {
    this.add(before, -1)
  }

  /** Counts the fields of work; those of other work than deliveries have no size. */
  add(fields: ValueObject | null, by: 1 | -1): void {
    const mount = fields?.get('mount')
    if (fields === null || typeof mount !== 'string') return
    const size = by * (fields.get('arguments') as string).length
    const state = stateOf(fields)
    const isUnfinished = state === 'pending' || state === 'running'
    this.#add(mount, {
      unfinished: isUnfinished ? size : 0,
      finished: isUnfinished ? 0 : size,
    })
  }

  addAll(others: DeliverySizes): void {
    for (const [mount, size] of others.#byMount) this.#add(mount, size)
  }

  #add(mount: string, size: MountSize): void {
    const { unfinished, finished } = this.of(mount)
    const next = {
      unfinished: unfinished + size.unfinished,
      finished: finished + size.finished,
    }
    if (next.unfinished === 0 && next.finished === 0) this.#byMount.delete(mount)
    else this.#byMount.set(mount, next)
  }
}

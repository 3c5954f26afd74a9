/**
 * A file that counts the records that are not in the hot store yet, and the dropped ones that no
 * record reports yet. It is overwritten in place without a sync, so it survives a kill of the
 * process, as the hot store does: the next start counts what the killed one lost. Failures are
 * ignored, as the log must never fail a call.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import type { DroppedRecords } from './log-rows.ts'

export interface Unwritten {
  /** The sequence of the first record that is queued or being written, or `next`. */
  readonly first: number
  /** The sequence of the next record. */
  readonly next: number
  /** Dropped records that no record in the queue reports. */
  readonly dropped: DroppedRecords
  /** The sequence of the report that is being written; 0 for none. */
  readonly report: number
  /** Dropped records that it reports. */
  readonly reported: DroppedRecords
}

const FIELDS = 9
/** More than the queue and a batch can have: a file with such counts is damaged. */
const LOST_MAX = 1_000_000

export class UnwrittenFile {
  readonly #file: number
  /** The two halves of each field: numbers cost less than integers of 64 bits. */
  readonly #fields = new DataView(new ArrayBuffer(FIELDS * 8))

  /** Throws if the file cannot be opened. */
  constructor(path: string) {
    this.#file = openSync(path, 'r+')
  }

  /** Returns null if the file is new or too short. */
  read(): Unwritten | null {
    const fields = new BigUint64Array(FIELDS)
    try {
      const read = readSync(this.#file, fields, 0, fields.byteLength, 0)
      if (read < fields.byteLength) return null
    } catch {
      return null
    }
    const [first, next, rate, queue, failed, report, ...of] = [...fields].map(Number) as Nine
    return {
      first,
      next,
      report,
      dropped: { rate, queue, failed },
      reported: { rate: of[0], queue: of[1], failed: of[2] },
    }
  }

  write({ first, next, dropped, report, reported }: Unwritten): void {
    const values = [
      first,
      next,
      dropped.rate,
      dropped.queue,
      dropped.failed,
      report,
      reported.rate,
      reported.queue,
      reported.failed,
    ]
    for (let i = 0; i < FIELDS; i++) {
      this.#fields.setUint32(i * 8, values[i]! >>> 0, true)
      this.#fields.setUint32(i * 8 + 4, Math.floor(values[i]! / 2 ** 32), true)
    }
    try {
      writeSync(this.#file, this.#fields, 0, this.#fields.byteLength, 0)
    } catch {
      // The next write repeats everything.
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}

type Nine = [number, number, number, number, number, number, number, number, number]

/**
 * Returns the records that a killed process lost, given the newest record of the hot store, and the
 * least sequence of a next one. A batch is in the hot store whole or not at all.
 */
export function lostSince(
  unwritten: Unwritten | null,
  newest: number,
): { readonly lost: DroppedRecords; readonly nextMin: number } {
  const none = { rate: 0, queue: 0, failed: 0 }
  if (unwritten === null) return { lost: none, nextMin: 0 }
  const { first, next, dropped, report, reported } = unwritten
  const isReportLost = report > newest
  const pending = Math.max(0, next - Math.max(first, newest + 1)) - (isReportLost ? 1 : 0)
  const back = isReportLost ? reported : none
  const lost = {
    rate: dropped.rate + back.rate,
    queue: dropped.queue + back.queue,
    failed: dropped.failed + back.failed + pending,
  }
  const isPossible = Object.values(lost).every((count) => count >= 0 && count <= LOST_MAX)
  return isPossible ? { lost, nextMin: next } : { lost: none, nextMin: 0 }
}

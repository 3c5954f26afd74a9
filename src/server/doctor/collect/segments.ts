/** Compares the files of archived segments with what the log records of them. */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { SegmentState } from '../../../storage/logs/log-inspection.ts'
import { digestOf } from './files.ts'
import { inSteps } from './steps.ts'

/**
 * The newest segments are read, each to its end, until they have `SEGMENT_BYTES_MAX`. All others
 * are compared by their length.
 * @limit Doctor: bytes of log segments after which one run reads no further one
 */
export const SEGMENT_BYTES_MAX = 64 * 1024 * 1024

export interface SegmentsReading {
  readonly segments: number
  readonly segmentsChecked: number
  readonly bytesChecked: number
  readonly damagedSegments: readonly string[]
}

/** `segments` begin with the newest. */
export async function readSegments(
  directory: string,
  segments: readonly SegmentState[],
): Promise<SegmentsReading> {
  const damaged = new Set<string>()
  await inSteps(segments, ({ name, bytes, isVerified, isHere }) => {
    const isThere = !isHere || sizeOf(join(directory, name)) === bytes
    if (!isVerified || !isThere) damaged.add(name)
  })
  let [segmentsChecked, bytesChecked] = [0, 0]
  for (const { name, digest, isHere } of segments) {
    if (!isHere || damaged.has(name)) continue
    if (bytesChecked >= SEGMENT_BYTES_MAX) break
    const found = await digestOf(join(directory, name))
    segmentsChecked += 1
    bytesChecked += found?.bytes ?? 0
    if (found?.digest !== digest) damaged.add(name)
  }
  return {
    segments: segments.length,
    segmentsChecked,
    bytesChecked,
    damagedSegments: segments.map(({ name }) => name).filter((name) => damaged.has(name)),
  }
}

function sizeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.size
}

/** Archive segments in an S3-compatible store, under `<Environment>/logs/<name>`. */
import type { S3Objects } from '../blobs/s3-objects.ts'
import type { SegmentRef } from './log-rows.ts'

export type SegmentCondition = 'whole' | 'missing' | 'damaged'

/** Every method raises UNAVAILABLE. */
export interface RemoteSegments {
  /** Stores the file under the name of the segment. */
  put(segment: SegmentRef, path: string): Promise<void>
  /** Reads the whole segment. */
  check(segment: SegmentRef): Promise<SegmentCondition>
  /** Does nothing if the segment does not exist. */
  remove(segment: SegmentRef): Promise<void>
}

export class S3Segments implements RemoteSegments {
  readonly #objects: S3Objects
  readonly #prefix: string

  /** Environments may share a bucket: each has its own prefix. */
  constructor(objects: S3Objects, environmentId: string) {
    this.#objects = objects
    this.#prefix = `${environmentId}/logs/`
  }

  put({ name, size }: SegmentRef, path: string): Promise<void> {
    return this.#objects.putFile(this.#prefix + name, path, size)
  }

  check(segment: SegmentRef): Promise<SegmentCondition> {
    return this.#objects.check(this.#prefix + segment.name, segment, { quick: false })
  }

  remove({ name }: SegmentRef): Promise<void> {
    return this.#objects.remove(this.#prefix + name)
  }
}

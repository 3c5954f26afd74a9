/** The part of the application that the routes of buckets use. */
import type { ConsoleObjects } from '../../../product/files/console-objects.ts'
import type { Files } from '../../../product/files/files.ts'
import type { ConcurrencyLimit } from '../../../system/concurrency.ts'
import type { ProductApp } from '../product-app.ts'

export interface BucketsApp extends ProductApp {
  readonly files: Files
  readonly objects: ConsoleObjects
  /** Objects that are being received: each holds up to 64 MiB of the disk. */
  readonly objectUploads: ConcurrencyLimit
}

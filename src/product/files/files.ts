/** Stored files of one Environment: the ports of their rules, and their background tasks. */
import type { FunctionStorage } from '../../engine/files/function-storage.ts'
import type { ComponentHealth } from '../../engine/usage/health.ts'
import { nextTurn } from '../../system/event-loop.ts'
import { PeriodicSweep } from '../../system/periodic-sweep.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { StorageKeys } from '../buckets/storage-callers.ts'
import { BucketUsage } from './bucket-usage.ts'
import { FileCollection } from './collection.ts'
import { functionStorage } from './function-storage.ts'
import { measuredBlobs } from './measured-blobs.ts'
import { removeAbandoned } from './multipart.ts'
import type { FilePorts } from './ports.ts'
import { Scrubber, type ScrubberPauses } from './scrubber.ts'
import { removeExpiredUploads } from './uploads.ts'

export interface FilesOptions extends Omit<FilePorts, 'collection' | 'usage' | 'uploadsBegun'> {
  readonly log: Logger
  readonly metrics: Metrics
  /** The keys of S3 clients. */
  readonly storageKeys: Pick<StorageKeys, 'find'>
  /** Pauses of the scrubber. Tests shorten them. */
  readonly pauses?: ScrubberPauses
}

export interface Files extends FilePorts {
  readonly collection: FileCollection
  readonly log: Logger
  readonly storageKeys: Pick<StorageKeys, 'find'>
  health(): Promise<ComponentHealth>
  /** Stops the background tasks. */
  close(): Promise<void>
}

type Documented = Pick<FilePorts, 'documents'>

/**
 * Creates an engine and its files. Each needs the other: the engine stores files of Functions, and
 * the files store their metadata as documents of the engine.
 */
export function openFilesOf<E extends Documented>(
  options: Omit<FilesOptions, 'documents'>,
  createEngine: (storage: FunctionStorage) => E,
): { readonly engine: E; readonly files: Files } {
  // No Function runs before the engine is returned, and `opened.files` is set by then.
  const opened: { files?: Files } = {}
  const engine = createEngine(functionStorage(() => opened.files!))
  const files = openFiles({ ...options, documents: engine.documents })
  opened.files = files
  return { engine, files }
}

const EXPIRY_PERIOD_MILLIS = 60_000

/** Returns the gauges. The counts are missing until all files are counted. */
function gaugesOf(usage: BucketUsage, { damaged }: Scrubber) {
  const total = usage.total()
  const counts = total && { files: total.files, fileBytes: Number(total.bytes) }
  return { filesDamaged: damaged, ...counts }
}

/** Starts the collection of unreferenced bytes, the removal of old grants, and the scrubber. */
function openFiles(given: FilesOptions): Files {
  const { log } = given
  const blobs = measuredBlobs(given.blobs, given.metrics)
  const options = { ...given, blobs }
  const collection = new FileCollection(options)
  const scrubber = new Scrubber(options)
  const usage = new BucketUsage(options)
  options.metrics.addSource(() => gaugesOf(usage, scrubber))
  const ports = { ...options, collection, usage, uploadsBegun: new Set<string>() }
  collection.start()
  usage.start()
  scrubber.start()
  const expiry = new PeriodicSweep({
    periodMillis: EXPIRY_PERIOD_MILLIS,
    sweep: (isStopped) => removeExpired(ports, isStopped),
    onError: (error) => log.warn('files.expired_grants_left', { error }),
  })
  expiry.start()
  return {
    ...ports,
    health: async () => {
      const availability = await blobs.availability()
      const isDegraded = availability === 'full' || scrubber.damaged > 0
      if (availability === 'unavailable') return { name: 'files', status: 'unavailable' }
      return { name: 'files', status: isDegraded ? 'degraded' : 'healthy' }
    },
    async close() {
      await expiry.stop()
      await scrubber.close()
      await collection.close()
      await usage.close()
    },
  }
}

async function removeExpired(ports: FilePorts, isStopped: () => boolean): Promise<void> {
  while (!isStopped() && (await removeExpiredUploads(ports))) await nextTurn()
  await removeAbandoned(ports, isStopped)
}

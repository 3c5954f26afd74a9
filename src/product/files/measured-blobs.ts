/**
 * Counts stored contents, contents that were dropped before they were stored, and uploads in
 * flight.
 */
import type { BlobStore, StagedBlob } from '../../storage/blobs/blobs.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'

/** Wraps the store to update the metrics. */
export function measuredBlobs(blobs: BlobStore, metrics: Metrics): BlobStore {
  const { fileContentsStored, fileContentsDropped, fileStoredBytes } = metrics.counters
  let inFlight = 0
  metrics.addSource(() => ({ fileUploadsInFlight: inFlight }))

  function measured(staged: StagedBlob): StagedBlob {
    let state: 'open' | 'stored' | 'ended' = 'open'
    inFlight += 1
    return {
      write: (bytes) => staged.write(bytes),
      finish: () => staged.finish(),
      async commit() {
        await staged.commit()
        if (state !== 'open') return
        state = 'stored'
        fileContentsStored.add()
        fileStoredBytes.add((await staged.finish()).size)
      },
      async discard() {
        if (state === 'open') fileContentsDropped.add()
        if (state !== 'ended') inFlight -= 1
        state = 'ended'
        await staged.discard()
      },
    }
  }

  return {
    stage: async (bytesExpected) => measured(await blobs.stage(bytesExpected)),
    requireSpace: () => blobs.requireSpace(),
    open: (content, slice) => blobs.open(content, slice),
    read: (content) => blobs.read(content),
    list: () => blobs.list(),
    remove: (sha256) => blobs.remove(sha256),
    check: (content, options) => blobs.check(content, options),
    quarantine: (sha256) => blobs.quarantine(sha256),
    availability: () => blobs.availability(),
  }
}

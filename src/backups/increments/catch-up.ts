/**
 * Writes what was committed while no increments were written, from the documents: the newest
 * versions of those that changed.
 */
import type { DocumentVersion, OperationRecord, ScanPage } from '../../documents/store.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { BackedUpServer } from '../base/base-backup.ts'
import {
  bytesOfDocument,
  documentRecord,
  type NamedBytes,
  operationRecord,
} from '../base/base-records.ts'
import { Throttle } from '../base/throttle.ts'
import { IncrementLines } from '../format/increment-lines.ts'

export interface CatchUpRequest {
  readonly server: BackedUpServer
  /** The newest sequence that the backup has. */
  readonly above: number
  /** The files of documents up to this sequence are stored. */
  readonly files: number
  readonly snapshot: number
  /** Operations that wrote nothing are read from this time on. */
  readonly fromMicros: bigint
  readonly bytesMax: number
  readonly signal: AbortSignal
}

export interface CatchUp {
  readonly lines: IncrementLines
  /** The files of documents that the backup does not have, by ascending sequence. */
  readonly files: readonly { readonly sequence: number; readonly contents: readonly NamedBytes[] }[]
}

const PAGE = { rowsMax: 32, textUnitsMax: 128 * 1024 }
/** An operation may have ended this long after the time that its record has. */
const OPERATION_DELAY_MICROS = 600_000_000n

/** Returns null if the changes have more bytes than `bytesMax`. Raises UNAVAILABLE. */
export async function readCatchUp(request: CatchUpRequest): Promise<CatchUp | null> {
  const { server, above, files, snapshot, bytesMax } = request
  const lines = new IncrementLines()
  const contents = new Map<number, NamedBytes[]>()
  if (snapshot > above) {
    const atMicros = String(server.system.nowMicros())
    lines.add({ t: 'commit', sequence: snapshot, atMicros })
  }
  const versions = (after: string) =>
    server.store.versions({ ...PAGE, after, snapshot, above: Math.min(above, files) })
  for await (const version of scanned<DocumentVersion>(request, versions)) {
    const content = bytesOfDocument(version.id, version.text)
    if (content !== null && version.sequence > files) {
      contents.set(version.sequence, [...(contents.get(version.sequence) ?? []), content])
    }
    if (version.sequence > above) lines.add(documentRecord(version))
    if (lines.bytes > bytesMax) return null
  }
  const operations = (after: string) => server.store.operations({ ...PAGE, after, snapshot })
  for await (const operation of scanned<OperationRecord>(request, operations)) {
    if (isNew(operation, request)) lines.add(operationRecord(operation))
    if (lines.bytes > bytesMax) return null
  }
  const sorted = [...contents].sort(([a], [b]) => a - b)
  return { lines, files: sorted.map(([sequence, each]) => ({ sequence, contents: each })) }
}

function isNew(operation: OperationRecord, { above, fromMicros }: CatchUpRequest): boolean {
  const { commitSequence, createdAtMicros } = operation
  if (commitSequence !== null) return commitSequence > above
  return createdAtMicros >= fromMicros - OPERATION_DELAY_MICROS
}

/** Yields the rows of all pages, and leaves other work its time between them. */
async function* scanned<T>(
  { server, signal }: CatchUpRequest,
  scan: (after: string) => MaybePromise<ScanPage<T>>,
): AsyncGenerator<T> {
  const throttle = new Throttle(server.system)
  for (let after: string | null = ''; after !== null; ) {
    signal.throwIfAborted()
    const from: string = after
    const end = throttle.begin()
    const page: ScanPage<T> = await scan(from)
    yield* page.rows
    after = page.after
    await end()
  }
}

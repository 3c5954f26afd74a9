/**
 * Writes what was committed while no increments were written, from the documents: the newest
 * versions of those that changed.
 */
import type { DocumentVersion, OperationRecord } from '../../documents/store.ts'
import type { BackedUpServer } from '../base/base-backup.ts'
import {
  bytesOfDocument,
  documentRecord,
  type NamedBytes,
  operationRecord,
} from '../base/base-records.ts'
import { SCAN_PAGE, scannedRows } from '../base/rows-in-steps.ts'
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

/** An operation may have ended this long after the time that its record has. */
const OPERATION_DELAY_MICROS = 600_000_000n

/** Returns null if the changes have more bytes than `bytesMax`. Raises UNAVAILABLE. */
export async function readCatchUp(request: CatchUpRequest): Promise<CatchUp | null> {
  const { server, above, files, snapshot, bytesMax } = request
  const lines = new IncrementLines()
  const steps = { throttle: new Throttle(server.system), signal: request.signal }
  const contents = new Map<number, NamedBytes[]>()
  if (snapshot > above) {
    const atMicros = String(server.system.nowMicros())
    lines.add({ t: 'commit', sequence: snapshot, atMicros })
  }
  const versions = (after: string) =>
    server.store.versions({ ...SCAN_PAGE, after, snapshot, above: Math.min(above, files) })
  for await (const version of scannedRows<DocumentVersion>(steps, versions)) {
    const content = bytesOfDocument(version.id, version.text)
    if (content !== null && version.sequence > files) {
      contents.set(version.sequence, [...(contents.get(version.sequence) ?? []), content])
    }
    if (version.sequence > above) lines.add(documentRecord(version))
    if (lines.bytes > bytesMax) return null
  }
  const operations = (after: string) => server.store.operations({ ...SCAN_PAGE, after, snapshot })
  for await (const operation of scannedRows<OperationRecord>(steps, operations)) {
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

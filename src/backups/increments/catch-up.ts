/**
 * Writes what was committed while no increments were written, from the documents: the newest
 * versions of those that changed.
 */
import type {
  ChangesPage,
  DocumentStore,
  DocumentVersion,
  OperationRecord,
} from '../../documents/store.ts'
import type { System } from '../../system/system.ts'
import {
  bytesOfDocument,
  documentRecord,
  type NamedBytes,
  operationRecord,
} from '../base/base-records.ts'
import { SCAN_PAGE, type Steps, scannedRows } from '../base/rows-in-steps.ts'
import { Throttle } from '../base/throttle.ts'
import { IncrementLines } from '../format/increment-lines.ts'

export interface CatchUpRequest {
  readonly server: {
    readonly system: System
    readonly store: Pick<DocumentStore, 'changedVersions' | 'newOperations'>
  }
  /** The newest sequence that the backup has. */
  readonly above: number
  /** The files of documents up to this sequence are stored. */
  readonly files: number
  readonly snapshot: number
  readonly bytesMax: number
  readonly signal: AbortSignal
}

export interface CatchUp {
  readonly lines: IncrementLines
  /** The files of documents that the backup does not have, by ascending sequence. */
  readonly files: readonly { readonly sequence: number; readonly contents: readonly NamedBytes[] }[]
}

/**
 * Returns null if the changes have more bytes than `bytesMax`, or the store does not know all of
 * them. Raises UNAVAILABLE.
 */
export async function readCatchUp(request: CatchUpRequest): Promise<CatchUp | null> {
  const reading = new Reading(request)
  await reading.addVersions()
  await reading.addFiles()
  await reading.addOperations()
  return reading.finish()
}

const NOTHING: ChangesPage = { rows: [], after: null, hasTombstones: true }

class Reading {
  readonly #request: CatchUpRequest
  readonly #steps: Steps
  readonly #lines = new IncrementLines()
  readonly #contents = new Map<number, NamedBytes[]>()
  /** The documents that were added: a store may return one more than once. */
  readonly #added = new Set<string>()
  #isKnown = true

  constructor(request: CatchUpRequest) {
    const { server, above, snapshot, signal } = request
    this.#request = request
    this.#steps = { throttle: new Throttle(server.system), signal }
    if (snapshot <= above) return
    const atMicros = String(server.system.nowMicros())
    this.#lines.add({ t: 'commit', sequence: snapshot, atMicros })
  }

  async addVersions(): Promise<void> {
    const { above, files } = this.#request
    for await (const version of this.#changedSince(above, true)) {
      if (this.#isEnded) return
      if (this.#added.has(version.id)) continue
      this.#added.add(version.id)
      this.#lines.add(documentRecord(version))
      if (version.sequence > files) this.#addContent(version)
    }
  }

  /** Adds the files of documents that the backup has without them. Tombstones name none. */
  async addFiles(): Promise<void> {
    const { above, files } = this.#request
    if (files >= above) return
    for await (const version of this.#changedSince(files, false)) {
      if (this.#isEnded) return
      if (version.sequence > above || this.#added.has(version.id)) continue
      if (this.#addContent(version)) this.#added.add(version.id)
    }
  }

  /**
   * Adds those that were stored after the last one that committed at or before `above`. Increments
   * have transactions in the order in which they were stored, so no earlier one is missing.
   */
  async addOperations(): Promise<void> {
    const { server, above, snapshot } = this.#request
    const scan = (after: string) =>
      server.store.newOperations({ ...SCAN_PAGE, after, snapshot, above })
    if (this.#isEnded) return
    for await (const operation of scannedRows<OperationRecord>(this.#steps, scan)) {
      this.#lines.add(operationRecord(operation))
      if (this.#isEnded) return
    }
  }

  finish(): CatchUp | null {
    if (this.#isEnded) return null
    const sorted = [...this.#contents].sort(([a], [b]) => a - b)
    const files = sorted.map(([sequence, contents]) => ({ sequence, contents }))
    return { lines: this.#lines, files }
  }

  get #isEnded(): boolean {
    return !this.#isKnown || this.#lines.bytes > this.#request.bytesMax
  }

  #changedSince(above: number, needsTombstones: boolean): AsyncGenerator<DocumentVersion> {
    const { server, snapshot } = this.#request
    return scannedRows<DocumentVersion>(this.#steps, async (after) => {
      if (this.#isEnded) return NOTHING
      const request = { ...SCAN_PAGE, after, snapshot, above }
      const page = await server.store.changedVersions(request)
      if (page !== null && (page.hasTombstones || !needsTombstones)) return page
      this.#isKnown = false
      return NOTHING
    })
  }

  /** Returns whether the document names the bytes of a file. */
  #addContent({ id, text, sequence }: DocumentVersion): boolean {
    const content = bytesOfDocument(id, text)
    if (content === null) return false
    const contents = this.#contents.get(sequence) ?? []
    contents.push(content)
    this.#contents.set(sequence, contents)
    return true
  }
}

/**
 * Data Admin: reads and writes of documents by operators, under the schema of an exact target and
 * without a Function (contract/management.md, Storage, runtime, data, schedules, Crons).
 */
import type {
  AdministeredDocument,
  ChangedDocument,
  DocumentAdministration,
  DocumentChange,
  DocumentPage,
  DocumentQuery,
} from '../../engine/administration/document-administration.ts'
import type {
  ImportedDocument,
  ImportOutcome,
} from '../../engine/administration/document-imports.ts'
import type { CompactionOutcome } from '../../engine/administration/table-compactions.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { requireRecent } from '../../system/client-clock.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import { isOfTable } from '../../value/ids.ts'
import { encodeStored } from '../../value/stored.ts'
import { encodeTagged } from '../../value/tagged.ts'
import type { HeldAudits } from '../audit/held-audits.ts'
import type { ChangePorts, ReleasesPort, RootPort } from '../ports.ts'
import { locateTarget } from '../targets.ts'
import type { DeclaredFields } from './declared-fields.ts'

interface ReadPorts extends RootPort, ReleasesPort {
  readonly engine: { readonly administration: DocumentAdministration }
}

interface WritePorts extends ReadPorts, Pick<ChangePorts, 'system'> {
  readonly heldAudits: HeldAudits
}

interface CompactionPorts extends WritePorts {
  readonly declaredFields: Pick<DeclaredFields, 'of'>
}

export interface ChangeInput {
  readonly operationId: OperationId
  readonly target: string
  readonly change: DocumentChange
  /** The client's clock. */
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
  /** The span of the request; absent if the request is not traced. */
  readonly trace?: Span | null | undefined
}

export interface ImportInput extends Omit<ChangeInput, 'change'> {
  readonly table: string
  readonly documents: readonly ImportedDocument[]
}

export interface CompactInput extends Omit<ChangeInput, 'change'> {
  readonly table: string
  /** True if no document is changed. */
  readonly dryRun: boolean
  /** The cursor of the request before; undefined for the first one. */
  readonly after: string | undefined
}

/** Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED and PRODUCT_UNAVAILABLE. */
export async function queryDocuments(
  ports: ReadPorts,
  target: string,
  query: DocumentQuery,
): Promise<DocumentPage & { readonly releaseId: ReleaseId }> {
  const releaseId = locateTarget(ports, target)
  const release = await ports.releases.load(releaseId)
  return { releaseId, ...(await ports.engine.administration.query(release, query)) }
}

/** Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED and PRODUCT_UNAVAILABLE. */
export async function readDocument(
  ports: ReadPorts,
  target: string,
  { table, documentId }: { readonly table: string; readonly documentId: string },
): Promise<AdministeredDocument> {
  const release = await ports.releases.load(locateTarget(ports, target))
  const found = isOfTable(table, documentId)
    ? await ports.engine.administration.read(release, table, documentId)
    : null
  if (found === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: 'document' })
  return found
}

/**
 * Changes one document; an exact repeat by the same operator gets the first result. Throws the
 * errors of DocumentAdministration.change and of a read.
 */
export async function changeDocument(
  ports: WritePorts,
  actor: Actor,
  { operationId, target, change, changedAtMicros, requestId, trace }: ChangeInput,
): Promise<ChangedDocument> {
  const { administration } = ports.engine
  const { table, documentId, kind } = change
  if (!isOfTable(table, documentId)) {
    throw new Fault('PRODUCT_INVALID', {
      violations: [{ path: 'documentId', rule: `an ID of the table ${table}` }],
    })
  }
  const isRepeat = await administration.isCommitted(operationId)
  if (!isRepeat) requireRecent(ports.system, changedAtMicros, 'changedAtMicros')
  const release = await ports.releases.load(locateTarget(ports, target))
  const fingerprint = fingerprintOf(actor, { target, change, changedAtMicros })
  return audited(ports, actor, {
    operationId,
    requestId,
    isRepeat,
    operation: `product.document.${kind}`,
    subject: documentId,
    perform: () =>
      administration.change(release, { operationId, fingerprint, change, requestId, trace }),
  })
}

/**
 * Inserts documents in one commit; those that exist with equal fields stay as they are. An exact
 * repeat by the same operator gets the first result. Throws the errors of
 * DocumentAdministration.import and of a read.
 */
export async function importDocuments(
  ports: WritePorts,
  actor: Actor,
  { operationId, target, table, documents, changedAtMicros, requestId, trace }: ImportInput,
): Promise<ImportOutcome> {
  const { administration } = ports.engine
  const foreign = documents.findIndex(({ documentId }) => !isOfTable(table, documentId))
  if (foreign !== -1) {
    throw new Fault('PRODUCT_INVALID', {
      violations: [
        { path: `documents[${foreign}].documentId`, rule: `an ID of the table ${table}` },
      ],
    })
  }
  const isRepeat = await administration.isCommitted(operationId)
  if (!isRepeat) requireRecent(ports.system, changedAtMicros, 'changedAtMicros')
  const release = await ports.releases.load(locateTarget(ports, target))
  // The text is unambiguous: an ID has no space, and the JSON of a value has no line break.
  const lines = documents.map(({ documentId, value }) => `${documentId} ${encodeStored(value)}`)
  const fingerprint = canonicalJson({
    operatorId: actor.operatorId,
    target,
    kind: 'import',
    table,
    documents: sha256Hex(lines.join('\n')),
    at: String(changedAtMicros),
  })
  const createdAtMicros = changedAtMicros
  const request = { operationId, fingerprint, table, createdAtMicros, documents, requestId, trace }
  return audited(ports, actor, {
    operationId,
    requestId,
    isRepeat,
    operation: 'product.document.import',
    subject: table,
    perform: () => administration.import(release, request),
  })
}

/**
 * Removes fields that no Release in use declares from the next documents of a table; an exact
 * repeat by the same operator gets the first result. Throws the errors of
 * DocumentAdministration.compact and of a read.
 */
export async function compactDocuments(
  ports: CompactionPorts,
  actor: Actor,
  { operationId, target, table, dryRun, after, changedAtMicros, requestId, trace }: CompactInput,
): Promise<CompactionOutcome> {
  const { administration } = ports.engine
  const isRepeat = !dryRun && (await administration.isCommitted(operationId))
  if (!isRepeat) requireRecent(ports.system, changedAtMicros, 'changedAtMicros')
  const release = await ports.releases.load(locateTarget(ports, target))
  const { operatorId } = actor
  const at = String(changedAtMicros)
  const kind = 'compact'
  const fingerprint = canonicalJson({ operatorId, target, kind, table, after: after ?? null, at })
  const declared = () => ports.declaredFields.of(table)
  const perform = () =>
    administration.compact(release, {
      operationId,
      fingerprint,
      table,
      dryRun,
      after,
      declared,
      requestId,
      trace,
    })
  if (dryRun) return perform()
  const operation = 'product.document.compact'
  return audited(ports, actor, {
    operationId,
    requestId,
    isRepeat,
    operation,
    subject: table,
    perform,
  })
}

interface AuditedWrite<T> {
  readonly operationId: OperationId
  readonly requestId: RequestId
  readonly isRepeat: boolean
  readonly operation: `product.document.${string}`
  readonly subject: string
  readonly perform: () => Promise<T>
}

/** Performs a write with its audit record. The first attempt of a repeat has stored the record. */
async function audited<T>(
  { heldAudits }: WritePorts,
  actor: Actor,
  { isRepeat, perform, ...change }: AuditedWrite<T>,
): Promise<T> {
  if (isRepeat) {
    const changed = await perform()
    heldAudits.deliverHeld(change.operationId)
    return changed
  }
  return heldAudits.hold(actor, change, {
    perform,
    isUndone: (error) => !isFault(error, 'PRODUCT_UNAVAILABLE'),
  })
}

function fingerprintOf(
  { operatorId }: Actor,
  { target, change, changedAtMicros }: Pick<ChangeInput, 'target' | 'change' | 'changedAtMicros'>,
): string {
  const { kind, table, documentId } = change
  const expected = 'expectedRevision' in change ? String(change.expectedRevision) : null
  const value = 'value' in change ? encodeTagged(change.value) : null
  const at = String(changedAtMicros)
  return canonicalJson({ operatorId, target, kind, table, documentId, expected, value, at })
}

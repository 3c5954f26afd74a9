/**
 * Data Admin: operators read and write documents by the schema of an exact target, without a
 * Function (Document 1, Storage, runtime, data, schedules, Cron).
 */
import type {
  AdministeredDocument,
  ChangedDocument,
  DocumentAdministration,
  DocumentChange,
  DocumentPage,
  DocumentQuery,
} from '../../engine/administration/document-administration.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { requireRecent } from '../../system/client-clock.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import { isOfTable } from '../../value/ids.ts'
import { encodeTagged } from '../../value/tagged.ts'
import type { HeldAudits } from '../audit/held-audits.ts'
import type { ChangePorts, ReleasesPort, RootPort } from '../ports.ts'
import { locateTarget } from '../serving/targets.ts'

interface ReadPorts extends RootPort, ReleasesPort {
  readonly engine: { readonly administration: DocumentAdministration }
}

interface WritePorts extends ReadPorts, Pick<ChangePorts, 'system'> {
  readonly heldAudits: HeldAudits
}

export interface ChangeInput {
  readonly operationId: OperationId
  readonly target: string
  readonly change: DocumentChange
  /** The client's clock. */
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
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
 * Changes one document; an exact repeat by the same operator gets the first result. Throws what
 * DocumentAdministration.change throws, and what a read throws.
 */
export async function changeDocument(
  ports: WritePorts,
  actor: Actor,
  { operationId, target, change, changedAtMicros, requestId }: ChangeInput,
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
  const perform = () =>
    administration.change(release, { operationId, fingerprint, change, requestId })
  if (isRepeat) {
    const changed = await perform()
    ports.heldAudits.settle(operationId)
    return changed
  }
  return ports.heldAudits.hold(
    actor,
    { operation: `product.document.${kind}`, subject: documentId, requestId, operationId },
    { perform, isUndone: (error) => !isFault(error, 'PRODUCT_UNAVAILABLE') },
  )
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

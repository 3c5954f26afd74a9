/** Pages of the audit for owners of the installation, newest first. */
import {
  type AuditFilter,
  type AuditPosition,
  findAuditFloor,
  listAudit,
  type NamedAuditRecord,
} from '../database/identity/audit.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { type AuditId, decodeUlid, encodeUlid } from '../value/ids.ts'
import { INSTALLATION } from '../value/scope.ts'
import { ValidationError } from '../value/validation-error.ts'
import { type Actor, requireCapability } from './actor.ts'
import type { IdentityCore } from './core.ts'

export interface AuditPageInput extends Omit<AuditFilter, 'before'> {
  /** The `next` of the previous page; null for the first page. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

export interface AuditPage {
  readonly items: readonly NamedAuditRecord[]
  /** Null on the last page. With a selective filter, earlier pages can be short or empty. */
  readonly next: string | null
}

/** Records that one page scans for matches, in about 20 ms. */
const SCANNED_MAX = 20_000

/**
 * Reads a page. Throws PLATFORM_ACCESS_DENIED without `operators:manage` at the installation, since
 * the list contains records of every scope. Throws ValidationError for a cursor that is damaged or
 * of another list.
 */
export async function readAuditPage(
  { database }: Pick<IdentityCore, 'database'>,
  actor: Actor,
  { after, limit, ...filter }: AuditPageInput,
): Promise<AuditPage> {
  requireCapability(actor, 'operators:manage', INSTALLATION)
  const span = { ...filter, before: after === null ? null : decodeCursor(after) }
  const isSelective = filter.actor !== null || filter.operation !== null
  const floor = isSelective ? await findAuditFloor(database, span, SCANNED_MAX) : null
  // One record more than the limit shows whether a next page exists.
  const found = await listAudit(database, span, floor, limit + 1)
  const items = found.slice(0, limit)
  const end = found.length > limit ? items.at(-1)! : floor
  return { items, next: end === null ? null : encodeCursor(end) }
}

/** Layout of a cursor: time, the 16 bytes of the audit ID, checksum. */
const ID_AT = 8
const CHECKSUM_AT = 24
const CURSOR_BYTES = 32

function encodeCursor({ atMicros, auditId }: AuditPosition): string {
  const bytes = new Uint8Array(CURSOR_BYTES)
  new DataView(bytes.buffer).setBigUint64(0, atMicros)
  bytes.set(decodeUlid(auditId.slice('aud_'.length)), ID_AT)
  bytes.set(checksum(bytes), CHECKSUM_AT)
  return encodeBase64Url(bytes)
}

function decodeCursor(text: string): AuditPosition {
  const bytes = decodeBase64Url(text)
  if (bytes.length !== CURSOR_BYTES || !digestEquals(checksum(bytes), bytes.slice(CHECKSUM_AT))) {
    throw new ValidationError('a cursor of this list')
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const atMicros = view.getBigInt64(0)
  // A forged cursor with a valid checksum can hold such a time; the database holds none above it.
  if (atMicros < 0n) throw new ValidationError('a cursor of this list')
  const millis = view.getUint16(ID_AT) * 2 ** 32 + view.getUint32(ID_AT + 2)
  const entropy = bytes.subarray(ID_AT + 6, CHECKSUM_AT)
  return {
    atMicros,
    auditId: `aud_${encodeUlid(millis, entropy)}` as AuditId,
  }
}

/** Detects damaged cursors and those of other lists. A forged cursor gives no access. */
function checksum(bytes: Uint8Array): Uint8Array {
  const covered = bytes.subarray(0, CHECKSUM_AT)
  return sha256('service/audit-cursor/v1\0', covered).subarray(0, CURSOR_BYTES - CHECKSUM_AT)
}

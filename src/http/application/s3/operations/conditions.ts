/** Conditions of requests (RFC 9110, section 13), as S3 applies them to objects. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { isNotModified } from '../../files/ranges.ts'
import { S3Fault } from '../errors.ts'
import { entityTag, lastModifiedMillis } from './object-headers.ts'

/** Returns whether the object is unchanged for the client. Throws PreconditionFailed. */
export function checkRead(headers: Headers, file: FileDocument, prefix = ''): boolean {
  const header = (name: string) => headers.get(prefix + name)
  const tag = entityTag(file)
  // A header has times in whole seconds.
  const changed = Math.floor(lastModifiedMillis(file) / 1000) * 1000
  const match = header('if-match')
  const since = Date.parse(header('if-unmodified-since') ?? '')
  if (match === null ? changed > since : !isNotModified(unquoted(match), tag)) {
    throw new S3Fault('PreconditionFailed')
  }
  const noneMatch = header('if-none-match')
  if (noneMatch !== null) return isNotModified(unquoted(noneMatch), tag)
  return changed <= Date.parse(header('if-modified-since') ?? '')
}

/**
 * Returns the check of the object that a write replaces: `If-None-Match: *` and `If-Match`. Throws
 * NotImplemented for other forms.
 */
export function writeCondition(headers: Headers): (replaced: FileDocument | null) => void {
  const [match, noneMatch] = [headers.get('if-match'), headers.get('if-none-match')]
  if (noneMatch !== null && noneMatch.trim() !== '*') {
    throw new S3Fault('NotImplemented', 'If-None-Match of a write: only *')
  }
  return (replaced) => {
    if (noneMatch !== null && replaced !== null) throw new S3Fault('PreconditionFailed')
    if (match === null) return
    if (replaced === null) throw new S3Fault('NoSuchKey')
    if (!isNotModified(unquoted(match), entityTag(replaced)))
      throw new S3Fault('PreconditionFailed')
  }
}

/** Some clients send a bare entity tag. */
function unquoted(header: string): string {
  return /^[0-9a-f]{32}(?:-\d{1,5})?$/.test(header.trim()) ? `"${header.trim()}"` : header
}

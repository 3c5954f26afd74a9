/** Conditions of requests (RFC 9110, section 13), as S3 applies them to objects. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { isNotModified } from '../../../ranges.ts'
import { S3Fault } from '../errors.ts'
import { entityTag, lastModifiedMillis } from './object-headers.ts'

/** Returns whether the object is unchanged for the client. Throws PreconditionFailed. */
export function checkRead(headers: Headers, file: FileDocument, prefix = ''): boolean {
  const header = (name: string) => headers.get(prefix + name)
  // Times in headers have whole seconds.
  const changed = Math.floor(lastModifiedMillis(file) / 1000) * 1000
  const match = header('if-match')
  const since = Date.parse(header('if-unmodified-since') ?? '')
  if (match === null ? changed > since : !hasTag(file, match)) {
    throw new S3Fault('PreconditionFailed')
  }
  const noneMatch = header('if-none-match')
  if (noneMatch !== null) return hasTag(file, noneMatch)
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
    if (match !== null) requireMatch(match, replaced)
  }
}

/** Headers of conditional deletes that only directory buckets support. */
const OTHER_CONDITIONS = ['x-amz-if-match-last-modified-time', 'x-amz-if-match-size']

/**
 * Returns the check of the object that a request deletes: `If-Match`. Throws NotImplemented for
 * conditions that would otherwise be ignored.
 */
export function deleteCondition(headers: Headers): (found: FileDocument | null) => void {
  const other = OTHER_CONDITIONS.find((name) => headers.has(name))
  if (other !== undefined) throw new S3Fault('NotImplemented', `the header ${other}`)
  const match = headers.get('if-match')
  return (found) => {
    if (match !== null) requireMatch(match, found)
  }
}

/** Throws NoSuchKey without an object, and PreconditionFailed for one with another entity tag. */
function requireMatch(match: string, found: FileDocument | null): void {
  if (found === null) throw new S3Fault('NoSuchKey')
  if (!hasTag(found, match)) throw new S3Fault('PreconditionFailed')
}

/** Returns whether the object has one of the entity tags; `*` matches any. */
export function hasTag(file: FileDocument, tags: string): boolean {
  return isNotModified(withQuotes(tags), entityTag(file))
}

/** Adds the quotes of an entity tag, which some clients omit. */
function withQuotes(header: string): string {
  return /^[0-9a-f]{32}(?:-\d{1,5})?$/.test(header.trim()) ? `"${header.trim()}"` : header
}

/**
 * IDs that imported documents get. They depend on the ID in the export alone, so that a reference
 * can be converted without reading the document that it names.
 */
import { sha256 } from '../../../system/digests.ts'
import { encodeUlid } from '../../../value/ids.ts'

/**
 * Returns `<prefix>_<ULID>`. `space` tells apart equal IDs of two collections. The 80 bits come
 * from a digest; the time is zero, since the export may not have one for a reference.
 */
export function importedId(prefix: string, space: string, sourceId: string): string {
  return `${prefix}_${encodeUlid(0, sha256(`svc import\n${space}\n${sourceId}`).subarray(0, 10))}`
}

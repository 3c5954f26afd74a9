/** The header in which a publisher declares the origin of a package. */
import type { TableCode } from '../errors/codes.ts'
import { decodeBase64Url } from '../value/base64url.ts'
import { parseStrictJson } from '../value/strict-json.ts'
import { read } from '../wire/reading/read.ts'
import { PROVENANCE_HEADER, Provenance, ProvenanceHeader } from '../wire/workspace.ts'

/**
 * Parses the header; null if it is absent. Throws `code`, and ValidationError for text that is
 * not JSON.
 */
export function readProvenance(header: string | null, code: TableCode): Provenance | null {
  if (header === null) return null
  const text = read(ProvenanceHeader, header, code, PROVENANCE_HEADER)
  const json = parseStrictJson(decodeBase64Url(text))
  return read(Provenance, json, code, PROVENANCE_HEADER)
}

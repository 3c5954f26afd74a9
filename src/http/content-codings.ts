/** Content negotiation by the Accept-Encoding header (RFC 9110, 12.5.3). */
import { CONTENT_CODINGS, type CompressedForms, type ContentCoding } from '../system/compression.ts'
import type { Compression } from './transfers/answers.ts'

/**
 * Characters of an Accept-Encoding header that are read. Browsers send fewer than 30; a longer
 * header is answered as if it were absent, so that reading one takes bounded work.
 * @limit Requests: an `Accept-Encoding` header that is read; a longer one gets no compression
 */
export const ACCEPT_ENCODING_CHARACTERS_MAX = 1_024

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const WEIGHT = '0(?:\\.[0-9]{0,3})?|1(?:\\.0{0,3})?'
/** One entry with the comma behind it. An entry may be empty (RFC 9110, 5.6.1). */
const ENTRY = new RegExp(
  `[ \\t]*(?:(${TOKEN})(?:[ \\t]*;[ \\t]*[qQ]=(${WEIGHT}))?[ \\t]*)?(?:,|$)`,
  'y',
)

/** The header of the last request, since most requests have one of few headers. */
let known: { readonly header: string; readonly coding: ContentCoding | null } = {
  header: '',
  coding: null,
}

/** Returns how the response to the request may be compressed. `forms` are those that are kept. */
export function compressionFor(
  { headers }: Request,
  forms: CompressedForms | null = null,
): Compression {
  return { coding: preferredCoding(headers.get('accept-encoding')), forms }
}

/**
 * Returns the coding that the client prefers, the first of CONTENT_CODINGS if it has no
 * preference; null for an uncompressed response. A malformed header counts as absent. A client that
 * rejects every coding, and the uncompressed response too, gets the latter.
 */
export function preferredCoding(header: string | null): ContentCoding | null {
  if (header === null || header.length > ACCEPT_ENCODING_CHARACTERS_MAX) return null
  if (known.header !== header) known = { header, coding: codingOf(readWeights(header)) }
  return known.coding
}

/** Returns the weight of each coding by its lower-case name, the lower one of two. */
function readWeights(header: string): Map<string, number> {
  const weights = new Map<string, number>()
  ENTRY.lastIndex = 0
  while (ENTRY.lastIndex < header.length) {
    const entry = ENTRY.exec(header)
    if (entry === null) return new Map()
    const [, name, weight = '1'] = entry
    if (name === undefined) continue
    const coding = name.toLowerCase()
    weights.set(coding, Math.min(weights.get(coding) ?? 1, Number(weight)))
  }
  return weights
}

function codingOf(weights: ReadonlyMap<string, number>): ContentCoding | null {
  let best: ContentCoding | null = null
  // A response without a coding is always acceptable, but preferred only where it is named.
  let bestWeight = weights.get('identity') ?? weights.get('*') ?? 0
  for (const coding of CONTENT_CODINGS) {
    const weight = weightOf(coding, weights)
    const isBetter = best === null ? weight > 0 && weight >= bestWeight : weight > bestWeight
    if (!isBetter) continue
    best = coding
    bestWeight = weight
  }
  return best
}

/** `x-gzip` is another name of gzip (RFC 9110, 8.4.1.3). */
function weightOf(coding: ContentCoding, weights: ReadonlyMap<string, number>): number {
  const alias = coding === 'gzip' ? weights.get('x-gzip') : undefined
  return weights.get(coding) ?? alias ?? weights.get('*') ?? 0
}

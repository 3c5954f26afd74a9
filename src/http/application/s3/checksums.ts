/** Checksums of objects and parts: the headers, elements and types of the S3 protocol. */
import type { FileDocument } from '../../../engine/files/file-documents.ts'
import type { ChecksumAlgorithm } from '../../../system/checksums.ts'
import { S3Fault } from './errors.ts'
import { element, type XmlNode } from './xml/writer.ts'

/** Checksums in Base64 by algorithm. A composite one ends with a hyphen and the number of parts. */
export type Checksums = NonNullable<FileDocument['checksums']>

interface Known {
  readonly bytes: number
  /** The name of the algorithm in elements and in `x-amz-checksum-algorithm`. */
  readonly name: string
  /** Permitted types for multipart uploads: over the checksums of the parts, or over all bytes. */
  readonly types: readonly ChecksumType[]
}

export type ChecksumType = 'COMPOSITE' | 'FULL_OBJECT'

const BOTH = ['COMPOSITE', 'FULL_OBJECT'] as const
export const CHECKSUMS: ReadonlyMap<ChecksumAlgorithm, Known> = new Map([
  ['crc32', { bytes: 4, name: 'CRC32', types: BOTH }],
  ['crc32c', { bytes: 4, name: 'CRC32C', types: BOTH }],
  ['crc64nvme', { bytes: 8, name: 'CRC64NVME', types: ['FULL_OBJECT'] }],
  ['sha1', { bytes: 20, name: 'SHA1', types: ['COMPOSITE'] }],
  ['sha256', { bytes: 32, name: 'SHA256', types: ['COMPOSITE'] }],
])
const PREFIX = 'x-amz-checksum-'
export const TYPE_HEADER = `${PREFIX}type`
const COMPOSITE = /-\d{1,5}$/
const OBJECT_CHECKSUM = /^[A-Za-z0-9+/]{4,64}={0,2}(?:-\d{1,5})?$/

/** Returns the algorithm of a header `x-amz-checksum-<algorithm>`; null for any other header. */
export function algorithmOfHeader(header: string): ChecksumAlgorithm | null {
  const algorithm = header.slice(PREFIX.length) as ChecksumAlgorithm
  return header.startsWith(PREFIX) && CHECKSUMS.has(algorithm) ? algorithm : null
}

/** Returns the algorithm of this name. Throws InvalidRequest. */
export function parseAlgorithm(text: string): ChecksumAlgorithm {
  for (const [algorithm, { name }] of CHECKSUMS) if (name === text.toUpperCase()) return algorithm
  throw new S3Fault('InvalidRequest', 'an unknown checksum algorithm')
}

export function checksumHeaders(checksums: Checksums | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [algorithm, value] of checksums ?? []) {
    headers[PREFIX + algorithm] = value
    headers[TYPE_HEADER] = typeOf(value)
  }
  return headers
}

/** Returns elements such as `ChecksumCRC32`, and with `withType` their common type. */
export function checksumElements(
  checksums: Checksums | undefined,
  { withType }: { readonly withType: boolean },
): XmlNode[] {
  const [...entries] = checksums ?? []
  const values = entries.map(([algorithm, value]) => {
    return element(`Checksum${CHECKSUMS.get(algorithm as ChecksumAlgorithm)!.name}`, value)
  })
  const [first] = entries
  if (!withType || first === undefined) return values
  return [...values, element('ChecksumType', typeOf(first[1]))]
}

function typeOf(value: string): ChecksumType {
  return COMPOSITE.test(value) ? 'COMPOSITE' : 'FULL_OBJECT'
}

/** The checksum that a completed upload will have. */
export interface WantedChecksum {
  readonly algorithm: ChecksumAlgorithm
  readonly isComposite: boolean
  /** The value that the client expects; null if the client states none. */
  readonly expected: string | null
}

/** Returns the checksum that a new upload declares; null for none. Throws InvalidRequest. */
export function declaredChecksum(headers: Headers): Omit<WantedChecksum, 'expected'> | null {
  const name = headers.get(`${PREFIX}algorithm`)
  const type = headers.get(TYPE_HEADER)?.toUpperCase()
  if (name === null && type !== undefined) {
    throw new S3Fault('InvalidRequest', 'a checksum type without an algorithm')
  }
  if (name === null) return null
  const algorithm = parseAlgorithm(name)
  const { types } = CHECKSUMS.get(algorithm)!
  const chosen = types.find((each) => each === (type ?? types[0]))
  if (chosen === undefined) throw new S3Fault('InvalidRequest', `${name} with this checksum type`)
  return { algorithm, isComposite: chosen === 'COMPOSITE' }
}

/** Returns a declared checksum in the names of the protocol. */
export function protocolNames({ algorithm, isComposite }: Omit<WantedChecksum, 'expected'>) {
  const type: ChecksumType = isComposite ? 'COMPOSITE' : 'FULL_OBJECT'
  return { name: CHECKSUMS.get(algorithm)!.name, type }
}

/**
 * Returns the checksum of a completed upload: the one that the request expects, otherwise the
 * declared one; null for none. Some clients send a composite one without the number of parts.
 */
export function wantedChecksum(
  headers: Headers,
  declared: Omit<WantedChecksum, 'expected'> | null,
): WantedChecksum | null {
  for (const [header, expected] of headers) {
    const algorithm = algorithmOfHeader(header)
    if (algorithm === null) continue
    if (!OBJECT_CHECKSUM.test(expected)) throw new S3Fault('InvalidDigest')
    const type = headers.get(TYPE_HEADER)?.toUpperCase()
    const isDeclared = declared?.algorithm === algorithm && declared.isComposite
    const isComposite = type === undefined ? isDeclared : type === 'COMPOSITE'
    return { algorithm, isComposite: isComposite || COMPOSITE.test(expected), expected }
  }
  return declared === null ? null : { ...declared, expected: null }
}

/** Throws BadDigest unless the checksum of the object is the expected one. */
export function requireExpected({ expected, isComposite }: WantedChecksum, value: string): void {
  if (expected === null || value === expected) return
  if (isComposite && value.replace(COMPOSITE, '') === expected) return
  throw new S3Fault('BadDigest', 'the checksum of the object')
}

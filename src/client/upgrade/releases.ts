/**
 * Reads the signed list of a release: its version, and the digest of each file. No file is
 * used before the signature of the list was verified.
 */
import { addressText } from './addresses.ts'
import { download, readSmall, type Source } from './downloads.ts'
import { undelivered, untrusted } from './faults.ts'
import {
  type PublicKey,
  SIGNATURE_FILE_BYTES_MAX,
  type SignatureProblem,
  verifySignature,
} from './minisign.ts'

const SUMS = 'SHA256SUMS'
const SIGNATURE = 'SHA256SUMS.minisig'
const SUMS_BYTES_MAX = 64 * 1024
/** Bytes of an archive. */
const ARCHIVE_BYTES_MAX = 512 * 1024 * 1024

const COMMENT = /^svc (\d{1,9}\.\d{1,9}\.\d{1,9}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/
const LINE = /^([0-9a-f]{64}) {2}([A-Za-z0-9][A-Za-z0-9._-]{0,99})$/

const PROBLEMS: Readonly<Record<SignatureProblem, string>> = {
  form: `${SIGNATURE} is not a signature of minisign.`,
  legacy: `${SIGNATURE} does not sign a digest: a signature of the older kind is not accepted.`,
  'other-key': `Another key has signed ${SUMS}.`,
  content: `The signature of ${SUMS} is wrong.`,
  comment: `The comment of ${SIGNATURE} was changed.`,
}

export interface SignedRelease {
  readonly version: string
  /** The time of the signature, as ISO 8601. */
  readonly signedAt: string
  /** SHA-256 of each file by its name. */
  readonly digests: ReadonlyMap<string, string>
}

/** Throws CLIENT_UPGRADE_UNDELIVERED and CLIENT_UPGRADE_UNTRUSTED. */
export async function readRelease(source: Source, key: PublicKey): Promise<SignedRelease> {
  const at = addressText(source.address)
  const sums = await readSmall(source, SUMS, SUMS_BYTES_MAX)
  if (sums === null) throw undelivered(`There is no ${SUMS} at ${at}.`)
  const signature = await readSmall(source, SIGNATURE, SIGNATURE_FILE_BYTES_MAX)
  if (signature === null) throw untrusted(`There is no ${SIGNATURE} at ${at}.`)
  const verified = verifySignature(key, signature.toString('utf8'), sums)
  if (verified.problem !== null) throw untrusted(PROBLEMS[verified.problem])
  const [, version, signedAt] = COMMENT.exec(verified.trustedComment) ?? []
  if (version === undefined || signedAt === undefined || Number.isNaN(Date.parse(signedAt))) {
    throw untrusted(`The comment of ${SIGNATURE} names no version of svc.`)
  }
  return { version, signedAt, digests: parseSums(sums.toString('latin1')) }
}

function parseSums(text: string): ReadonlyMap<string, string> {
  const digests = new Map<string, string>()
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, digest, name] = LINE.exec(line) ?? []
    if (digest === undefined || name === undefined || digests.has(name)) {
      throw untrusted(`${SUMS} has a line that is not a digest and a name.`)
    }
    digests.set(name, digest)
  }
  return digests
}

/**
 * Writes the archive of the target to a new file and verifies its digest. Returns the digest.
 * Throws as readRelease.
 */
export async function downloadArchive(
  source: Source,
  { version, digests }: SignedRelease,
  options: { readonly target: string; readonly to: string; onBytes(total: number): void },
): Promise<string> {
  const { target, to, onBytes } = options
  const name = `svc-${version}-${target}.tar.gz`
  const expected = digests.get(name)
  if (expected === undefined) throw undelivered(`The release has no build for ${target}.`)
  const bytesMax = ARCHIVE_BYTES_MAX
  const digest = await download(source, name, { to, bytesMax, onBytes })
  if (digest === null) throw undelivered(`There is no ${name} at ${addressText(source.address)}.`)
  if (digest !== expected) {
    throw untrusted(`${name} has the SHA-256 ${digest}, and ${expected} was signed.`)
  }
  return digest
}

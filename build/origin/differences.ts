/** Says where two versions of an artefact differ. */
import { gunzipSync } from 'node:zlib'
import type { Member } from '../archives.ts'
import { readTar } from '../image/read-tar.ts'
import { statementOf } from './provenance.ts'

/** Returns where the artefacts differ first; null if they are the same. */
export function difference(name: string, published: Buffer, rebuilt: Buffer): string | null {
  if (published.equals(rebuilt)) return null
  if (name.endsWith('.intoto.jsonl')) return statementDifference(published, rebuilt)
  if (/\.(?:tar\.gz|tgz)$/.test(name)) {
    const [before, after] = [unpack(published), unpack(rebuilt)]
    if (before === null || after === null) return 'one of them cannot be decompressed'
    return before.equals(after)
      ? 'the files inside are the same, compressed otherwise'
      : archiveDifference(before, after)
  }
  if (name.endsWith('.tar')) return archiveDifference(published, rebuilt)
  return byteDifference(published, rebuilt)
}

function unpack(bytes: Buffer): Buffer | null {
  try {
    return gunzipSync(bytes)
  } catch {
    return null
  }
}

/** Compares what is signed: the signature differs each time. */
function statementDifference(published: Buffer, rebuilt: Buffer): string | null {
  try {
    const [before, after] = [published, rebuilt].map((each) => statementOf(each.toString()))
    if (before === after) return null
    return `its statement: ${byteDifference(Buffer.from(before!), Buffer.from(after!))}`
  } catch {
    return 'one of them is no envelope with a statement'
  }
}

function archiveDifference(published: Buffer, rebuilt: Buffer): string {
  let members: [Member[], Member[]]
  try {
    members = [readTar(published), readTar(rebuilt)]
  } catch {
    return byteDifference(published, rebuilt)
  }
  const [before, after] = members
  const found = new Map(after.map((member) => [member.path, member]))
  for (const member of before) {
    const other = found.get(member.path)
    if (other === undefined) return `${member.path} is in the published archive alone`
    found.delete(member.path)
    const [bytes, others] = [Buffer.from(member.bytes), Buffer.from(other.bytes)]
    if (!bytes.equals(others)) return `${member.path}: ${byteDifference(bytes, others)}`
    for (const field of ['type', 'mode', 'owner', 'target'] as const) {
      if (member[field] !== other[field]) return `${member.path}: its ${field} in the archive`
    }
  }
  const [extra] = found.keys()
  if (extra !== undefined) return `${extra} is in the rebuilt archive alone`
  return `the order or the headers of its files: ${byteDifference(published, rebuilt)}`
}

function byteDifference(published: Buffer, rebuilt: Buffer): string {
  const length = Math.min(published.length, rebuilt.length)
  let at = 0
  while (at < length && published[at] === rebuilt[at]) at += 1
  const lengths =
    published.length === rebuilt.length
      ? ''
      : `, ${published.length} bytes published and ${rebuilt.length} rebuilt`
  return `from byte ${at} on${lengths}`
}

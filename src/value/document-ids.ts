/**
 * IDs of the documents that an invocation inserts. They are derived from its seed, so that every
 * attempt creates equal IDs, and a runner knows the ID of an insert before the server processes it.
 */
import { encodeUlid } from './ids.ts'

/** Returns the text whose SHA-256 yields the ID of insert number `count`. `seed` is hexadecimal. */
export function documentIdSource(seed: string, count: number): string {
  return `${seed}document-id/${count}`
}

/** `digest` has at least 10 bytes. The count comes first, which keeps the order of creation. */
export function documentId(
  table: string,
  { nowMicros, count, digest }: { nowMicros: bigint; count: number; digest: Uint8Array },
): string {
  const tail = digest.slice(0, 10)
  tail.set([count >> 16, (count >> 8) & 255, count & 255])
  return `${table}_${encodeUlid(Number(nowMicros / 1000n), tail)}`
}

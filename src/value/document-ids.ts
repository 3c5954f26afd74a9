/**
 * IDs of the documents that an invocation inserts. Its seed gives them, so that every attempt makes
 * the same ones, and a runner knows the ID of an insert before the server has worked it.
 */
import { encodeUlid } from './ids.ts'

/** Its SHA-256 gives the ID of the document that is number `count`. `seed` is hexadecimal. */
export function documentIdSource(seed: string, count: number): string {
  return `${seed}document-id/${count}`
}

/** `digest` has 10 bytes at least; the count in front keeps the order of creation. */
export function documentId(
  table: string,
  { nowMicros, count, digest }: { nowMicros: bigint; count: number; digest: Uint8Array },
): string {
  const tail = digest.slice(0, 10)
  tail.set([count >> 16, (count >> 8) & 255, count & 255])
  return `${table}_${encodeUlid(Number(nowMicros / 1000n), tail)}`
}

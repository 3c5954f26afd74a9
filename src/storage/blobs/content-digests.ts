/** Digests of whole contents that are in memory. */
import { inSlices } from '../../system/event-loop.ts'

/** Resolves to the SHA-256 in hexadecimal, and lets other events run meanwhile. */
export async function sha256InSlices(bytes: Uint8Array): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  await inSlices(bytes, (slice) => void hasher.update(slice))
  return hasher.digest('hex')
}

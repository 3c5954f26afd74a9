/** Memory that several processes of this server map from one file. Atomics work in it. */
import { closeSync, ftruncateSync, openSync } from 'node:fs'

/** Creates the file, which only this user may read, full of zeros, and maps it. */
export function createSharedMemory(path: string, bytes: number): BigInt64Array {
  const file = openSync(path, 'wx+', 0o600)
  try {
    ftruncateSync(file, bytes)
  } finally {
    closeSync(file)
  }
  return mapSharedMemory(path)
}

/** Maps a file that another process has created. */
export function mapSharedMemory(path: string): BigInt64Array {
  const { buffer, byteOffset, length } = Bun.mmap(path, { shared: true })
  return new BigInt64Array(buffer, byteOffset, length / BigInt64Array.BYTES_PER_ELEMENT)
}

/** Memory that several processes of this server map from one file. Atomics work in it. */
import { closeSync, ftruncateSync, openSync } from 'node:fs'

/** Microseconds that all processes of a machine count alike, and that never go back in one. */
export function sharedMicros(): number {
  return Math.floor((performance.timeOrigin + performance.now()) * 1000)
}

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

/** Names the `svc dev` that serves a root in a file beside the lock, which names no process. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { readSecretFile, writeFileAtomic } from '../../system/files.ts'
import { isProcessRunning } from '../../system/processes.ts'
import { LOCAL_SERVER_FILE } from '../../value/product-root.ts'
import {
  formatLocalServer,
  LOCAL_SERVER_BYTES_MAX,
  type LocalServer,
  parseLocalServer,
} from '../../wire/files/local-server.ts'

/** Writes the file for this process, which must own the lock of the root. */
export function writeHolder(rootPath: string, server: LocalServer): void {
  writeFileAtomic(join(rootPath, LOCAL_SERVER_FILE), formatLocalServer(server))
}

export function removeHolder(rootPath: string): void {
  rmSync(join(rootPath, LOCAL_SERVER_FILE), { force: true })
}

/** Returns the failure of a locked root, with the process that holds it if that is known. */
export function lockedBy(rootPath: string, cause: unknown): Fault {
  const holder = readHolder(rootPath)
  const who =
    holder === null || !isProcessRunning(holder.pid)
      ? 'another process, such as svc-server'
      : `svc dev at ${holder.url}, process ${holder.pid}`
  const detail = `It is ${who}.`
  return new Fault('SERVER_PRODUCT_ROOT_LOCKED', { detail, cause })
}

function readHolder(rootPath: string): Pick<LocalServer, 'pid' | 'url'> | null {
  try {
    const path = join(rootPath, LOCAL_SERVER_FILE)
    return parseLocalServer(readSecretFile(path, { bytesMax: LOCAL_SERVER_BYTES_MAX }))
  } catch {
    // A missing or malformed file changes only the explanation: the lock itself decides.
    return null
  }
}

/** Which `svc dev` serves a root: a file beside the lock, which itself names no process. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { HOLDER_FILE } from '../../storage/root.ts'
import { readSecretFile, writeFileAtomic } from '../../system/files.ts'
import { isProcessRunning } from '../../system/processes.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { integer } from '../../wire/fields.ts'
import { parse } from '../../wire/reading/read.ts'
import { schema } from '../../wire/schema.ts'

const HolderFile = schema({ version: '1', pid: integer(1, 2 ** 31 - 1), url: 'string' })
const BYTES_MAX = 4_096

/** Names this process; only the owner of the root's lock may call it. */
export function writeHolder(rootPath: string, holder: { pid: number; url: string }): void {
  const text = JSON.stringify({ version: 1, ...holder })
  writeFileAtomic(join(rootPath, HOLDER_FILE), `${text}\n`)
}

export function removeHolder(rootPath: string): void {
  rmSync(join(rootPath, HOLDER_FILE), { force: true })
}

/** Returns the failure of a locked root, with the process that holds it where that is known. */
export function lockedBy(rootPath: string, cause: unknown): Fault {
  const holder = readHolder(rootPath)
  const who =
    holder === null || !isProcessRunning(holder.pid)
      ? 'another process, such as svc-server'
      : `svc dev at ${holder.url}, process ${holder.pid}`
  const detail = `It is ${who}.`
  return new Fault('SERVER_PRODUCT_ROOT_LOCKED', { detail, cause })
}

function readHolder(rootPath: string): { readonly pid: number; readonly url: string } | null {
  try {
    const bytes = readSecretFile(join(rootPath, HOLDER_FILE), { bytesMax: BYTES_MAX })
    return parse(HolderFile, parseStrictJson(bytes))
  } catch {
    // The file only explains the lock.
    return null
  }
}

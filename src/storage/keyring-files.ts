/** Reads and replaces the keyring file of a root that this process owns. */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writeFileAtomic } from '../system/files.ts'
import {
  formatKeyring,
  KEYRING_FILE,
  type KeyringFile,
  ROOT_FILE_BYTES_MAX,
} from '../value/product-root.ts'
import { parseKeyring } from '../wire/files/product-root.ts'
import { readOwnFile } from './files.ts'

/** Temporary files of an interrupted write, which would keep removed keys. */
const UNFINISHED = new RegExp(`^\\.${KEYRING_FILE.replace('.', '\\.')}\\.[0-9a-f]+\\.tmp$`)

export interface KeyringFiles {
  read(): KeyringFile
  /** Replaces the file atomically: a crash leaves the old or the new one. Throws FileFailure. */
  write(keyring: KeyringFile): void
}

export function keyringFiles(root: string): KeyringFiles {
  const path = join(root, KEYRING_FILE)
  return {
    read: () => parseKeyring(readOwnFile(path, ROOT_FILE_BYTES_MAX, 'private')),
    write(keyring) {
      for (const name of readdirSync(root)) {
        if (UNFINISHED.test(name)) rmSync(join(root, name))
      }
      writeFileAtomic(path, formatKeyring(keyring))
    },
  }
}

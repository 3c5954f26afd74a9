/** The keyring file of a root that this process owns. */
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

/** What an interrupted write leaves: it would keep keys that are removed. */
const UNFINISHED = new RegExp(`^\\.${KEYRING_FILE.replace('.', '\\.')}\\.[0-9a-f]+\\.tmp$`)

export interface KeyringFiles {
  read(): KeyringFile
  /** The old file or the new one is there, whole, whenever it stops. Throws FileFailure. */
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

/** The backup that was made before the last migrations that are one way. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT_FILE_BYTES_MAX } from '../value/product-root.ts'
import { ValidationError } from '../value/validation-error.ts'
import { parseUpgrade, type UpgradeBackup } from '../wire/files/upgrades.ts'
import { readOwnFile } from './files.ts'
import { UPGRADE_FILE } from './root.ts'

/**
 * Returns the backup that the Product root names as the way back from its last upgrade; null for
 * none. Throws SERVER_PRODUCT_ROOT_INVALID for a file that cannot be read.
 */
export function readUpgrade(root: string): UpgradeBackup | null {
  const path = join(root, UPGRADE_FILE)
  if (!existsSync(path)) return null
  try {
    return parseUpgrade(readOwnFile(path, ROOT_FILE_BYTES_MAX, 'private'))
  } catch (error) {
    // Another version wrote it.
    if (error instanceof ValidationError) return null
    throw error
  }
}

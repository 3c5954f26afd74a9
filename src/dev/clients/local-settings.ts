/** The settings of a page on this machine: a file that `svc dev` writes beside the client. */
import { join } from 'node:path'
import { readSecretFile } from '../../system/files.ts'
import type { Secret } from '../../value/secret.ts'
import { writeFile } from '../workspace/written-files.ts'

/** Name of the file. It is in the directory of the client, whose .gitignore lists it. */
export const LOCAL_SETTINGS_FILE = 'dev.json'
const BYTES_MAX = 4_096

export interface LocalSettings {
  /** Origin of the application API on this machine. */
  readonly url: string
  readonly applicationKey: Secret
  readonly target: string
}

/**
 * Writes the file, readable by this user alone, unless it is current. The directory must exist.
 * Throws CLIENT_FILE_FAILED.
 */
export function writeLocalSettings(directory: string, settings: LocalSettings): void {
  const path = join(directory, LOCAL_SETTINGS_FILE)
  const { url, target } = settings
  const content = { url, applicationKey: settings.applicationKey.reveal(), target }
  const text = `${JSON.stringify(content, null, 2)}\n`
  if (isCurrent(path, text)) return
  writeFile(path, text, { isDurable: false })
}

function isCurrent(path: string, text: string): boolean {
  try {
    const bytes = readSecretFile(path, { bytesMax: BYTES_MAX })
    return new TextDecoder().decode(bytes) === text
  } catch {
    return false
  }
}

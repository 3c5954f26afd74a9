/** The configuration files that ship beside the executable. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../bundle.ts'

const FOLDER = 'dist-config'

/** Returns the paths of the files from the root of the repository, sorted. */
export function shippedConfigs(): string[] {
  const below = readdirSync(join(ROOT, FOLDER), { recursive: true, withFileTypes: true })
  return below
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
}

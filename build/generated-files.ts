/** Files that a generator owns: it compares them with its texts, and writes those that differ. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** Returns whether the file differs from the text, or is missing. */
export function isFileStale(root: string, path: string, text: string): boolean {
  try {
    return readFileSync(join(root, path), 'utf8') !== text
  } catch {
    return true
  }
}

/**
 * Writes the texts of stale files by path and prints the paths. With the argument `--check` of the
 * process it changes nothing, and the process fails if a file is stale.
 */
export function updateFiles(files: Readonly<Record<string, string>>): void {
  const check = process.argv.includes('--check')
  for (const [path, text] of Object.entries(files)) {
    if (!isFileStale(ROOT, path, text)) continue
    process.stdout.write(`${path}${check ? ' is stale: run npm run generate' : ''}\n`)
    if (check) {
      process.exitCode = 1
      continue
    }
    mkdirSync(dirname(join(ROOT, path)), { recursive: true })
    writeFileSync(join(ROOT, path), text)
  }
}

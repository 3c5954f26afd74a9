/** Directories that survive a power failure. */
import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'

/** Creates the directories of a relative path, each durable in the one above it. */
export async function makeDirectories(root: string, path: string): Promise<void> {
  let parent = root
  for (const name of path.split('/')) {
    const directory = join(parent, name)
    try {
      await mkdir(directory, { mode: 0o700 })
      await syncDirectory(parent)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    parent = directory
  }
}

/** Makes the entries of a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

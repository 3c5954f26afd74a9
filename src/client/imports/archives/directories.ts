/** Reads an export that is a directory or one file. Symbolic links are rejected, not followed. */
import {
  closeSync,
  constants,
  createReadStream,
  type Dirent,
  fstatSync,
  openSync,
  readdirSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { withPath } from '../../files.ts'
import { exportInvalid } from './export-fault.ts'
import { EXPORT_FILES_MAX, type ExportFiles } from './export-files.ts'
import { checkedName } from './file-names.ts'

const DEPTH_MAX = 32
/** Windows has no flag against symbolic links. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0)

export function openDirectory(root: string): ExportFiles {
  const names: string[] = []
  const visit = (within: string, depth: number): void => {
    if (depth > DEPTH_MAX) throw exportInvalid(`${within} has more than ${DEPTH_MAX} levels.`)
    const path = join(root, within)
    const entries = withPath(path, () => readdirSync(path, { withFileTypes: true }))
    for (const entry of entries) {
      const name = checkedName(within === '' ? entry.name : `${within}/${entry.name}`)
      if (entry.isDirectory()) visit(name, depth + 1)
      else names.push(requireFile(entry, name))
      if (names.length > EXPORT_FILES_MAX) {
        throw exportInvalid(`The export has more than ${EXPORT_FILES_MAX} files.`)
      }
    }
  }
  visit('', 0)
  names.sort()
  return filesIn(root, names)
}

/** Opens a file as an export that has nothing else. */
export function openSingleFile(path: string): ExportFiles {
  return filesIn(dirname(path), [checkedName(basename(path))])
}

function filesIn(root: string, names: readonly string[]): ExportFiles {
  const known = new Set(names)
  return {
    names,
    has: (name) => known.has(name),
    sizeOf: (name) => withFile(join(root, name), (file) => fstatSync(file).size),
    read(name) {
      const path = join(root, name)
      const file = withPath(path, () => openSync(path, FLAGS))
      return createReadStream('', { fd: file }) as AsyncIterable<Uint8Array>
    },
    close: () => {},
  }
}

function requireFile(entry: Dirent, name: string): string {
  if (entry.isFile()) return name
  throw exportInvalid(`${name} is neither a file nor a directory.`)
}

function withFile<T>(path: string, work: (file: number) => T): T {
  return withPath(path, () => {
    const file = openSync(path, FLAGS)
    try {
      return work(file)
    } finally {
      closeSync(file)
    }
  })
}

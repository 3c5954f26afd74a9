/** A target whose directory changes, without a real mount. */
import type { DirectoryTarget } from '../../src/backups/targets/directory.ts'
import type { BackupTarget } from '../../src/backups/targets/targets.ts'

/** Returns a target whose directory changes, as where a file system is mounted. */
export function changingTarget(first: DirectoryTarget, fileSystems: readonly number[]) {
  let used = { directory: first, fileSystems }
  const target: BackupTarget = {
    location: first.location,
    names: (directory) => used.directory.names(directory),
    sizeOf: (name) => used.directory.sizeOf(name),
    read: (name) => used.directory.read(name),
    write: (name, bytes) => used.directory.write(name, bytes),
    remove: (name) => used.directory.remove(name),
    removeDirectory: (directory) => used.directory.removeDirectory(directory),
    fileSystems: async () => used.fileSystems,
  }
  const use = (directory: DirectoryTarget, through: readonly number[]): void => {
    used = { directory, fileSystems: through }
  }
  return { target, use }
}

/** A target that fails as long as the test wants. */
import type { BackupTarget } from '../../src/backups/targets/targets.ts'
import { Fault } from '../../src/errors/fault.ts'

export interface FailingTarget extends BackupTarget {
  isFailing: boolean
  /** Only names with this text fail. */
  failingNames: string
}

export function failingTarget(target: BackupTarget): FailingTarget {
  const failing: FailingTarget = {
    location: target.location,
    isFailing: false,
    failingNames: '',
    names: (directory) => guarded(directory, () => target.names(directory)),
    sizeOf: (name) => guarded(name, () => target.sizeOf(name)),
    read: (name) => target.read(name),
    write: (name, bytes) => guarded(name, () => target.write(name, bytes)),
    remove: (name) => guarded(name, () => target.remove(name)),
    removeDirectory: (directory) => guarded(directory, () => target.removeDirectory(directory)),
    fileSystems: () => guarded('', async () => (await target.fileSystems?.()) ?? []),
  }
  async function guarded<T>(name: string, access: () => Promise<T>): Promise<T> {
    if (failing.isFailing && name.includes(failing.failingNames))
      throw new Fault('UNAVAILABLE', { detail: 'the test' })
    return access()
  }
  return failing
}

/** A target that fails as long as the test wants. */
import type { BackupTarget } from '../../src/backups/targets/targets.ts'
import { Fault } from '../../src/errors/fault.ts'

export interface FailingTarget extends BackupTarget {
  isFailing: boolean
}

export function failingTarget(target: BackupTarget): FailingTarget {
  const failing: FailingTarget = {
    location: target.location,
    isFailing: false,
    names: (directory) => guarded(() => target.names(directory)),
    sizeOf: (name) => guarded(() => target.sizeOf(name)),
    read: (name) => target.read(name),
    write: (name, bytes) => guarded(() => target.write(name, bytes)),
    remove: (name) => guarded(() => target.remove(name)),
    removeDirectory: (directory) => guarded(() => target.removeDirectory(directory)),
  }
  async function guarded<T>(access: () => Promise<T>): Promise<T> {
    if (failing.isFailing) throw new Fault('UNAVAILABLE', { detail: 'the test' })
    return access()
  }
  return failing
}

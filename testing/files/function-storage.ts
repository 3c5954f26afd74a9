/** A storage of `ctx.storage` for engines whose Functions store nothing. */
import type { FunctionStorage } from '../../src/engine/files/function-storage.ts'
import { Fault } from '../../src/errors/fault.ts'

export function noStorage(): FunctionStorage {
  const reject = (): never => {
    throw new Fault('UNAVAILABLE', { detail: 'this engine has no storage' })
  }
  return {
    issueDownload: reject,
    signDownload: reject,
    issueUpload: async () => reject(),
    put: async () => reject(),
    read: async () => reject(),
  }
}

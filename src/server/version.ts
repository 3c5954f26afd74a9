/** `svc-server version`. */
import { BUILD_VERSION } from '../value/version.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

export async function run(_environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  io.out(`svc-server ${BUILD_VERSION} (${process.platform}-${process.arch})\n`)
  return 0
}

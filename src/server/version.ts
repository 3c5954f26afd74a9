/** `svc-server version`. */
import { VERSION } from '../value/version.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

export async function run(_environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  io.out(`svc-server ${VERSION} (${process.platform}-${process.arch})\n`)
  return 0
}

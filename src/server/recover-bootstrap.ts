/** `svc-server recover-bootstrap`: replaces a lost first-owner code before there is an owner. */
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { withIdentity } from './recovery.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const path = await withIdentity({ mode: 'recover-bootstrap', environment, io }, (identity) =>
    identity.recoverBootstrap(),
  )
  io.out('Every earlier first-owner code is revoked. The new one is valid for 24 hours, in\n')
  io.out(`  ${path}\n`)
  return 0
}

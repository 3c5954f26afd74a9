/** `svc-server recover-owner`: lets an owner in again whose every device is lost. */
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { withIdentity } from './recovery.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const path = await withIdentity({ mode: 'recover-owner', environment, io }, (identity) =>
    identity.recoverOwner(),
  )
  io.out('Every earlier owner invitation of this kind is revoked. The new one is valid for\n')
  io.out(`30 minutes and makes a new owner of the installation, in\n  ${path}\n`)
  return 0
}

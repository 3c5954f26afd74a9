/** `svc-server recover-owner`: restores access for an owner who has lost all devices. */
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

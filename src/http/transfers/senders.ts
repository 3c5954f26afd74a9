/** The sender of a request and the memory that its body holds. */

import type { Holder, Reservation } from '../../system/memory/memory-budget.ts'
import { type PeerBinding, peerOf } from '../rate-limits.ts'

export interface Sender {
  readonly binding: Partial<PeerBinding> | undefined
  /** The authenticated caller; null before authentication and on public routes. */
  readonly caller: { readonly credentialId: string } | null
  /** Memory of a body that is not small; released once the body is parsed. */
  bodyMemory: Reservation | null
}

/** Returns the credential and the address that the memory of a request is charged to. */
export function holderOf({ binding, caller }: Sender): Holder {
  return { credential: caller?.credentialId ?? null, peer: peerOf(binding) }
}

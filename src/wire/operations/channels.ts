/** Promotion and rollback of a Channel. */
import { Promoted, PromoteRequest, RollbackRequest } from '../channels.ts'
import { environmentOperation } from './operation.ts'

/** Errors of a Release that cannot be bound, or of a Channel that another request changed. */
const BINDING_ERRORS = [
  'PRODUCT_CAS_CONFLICT',
  'PRODUCT_INCOMPATIBLE',
  'PRODUCT_RELEASE_RETIRED',
  'PRODUCT_STATE_CONFLICT',
] as const

export const promoteRelease = environmentOperation({
  method: 'PUT',
  path: '/channels/:channel',
  name: 'promoteRelease',
  summary: 'Binds a Channel to a Release.',
  capability: 'channels:promote',
  body: { schema: PromoteRequest },
  // A lost response is reconciled with the status.
  replay: 'unsafe',
  replies: { 200: Promoted },
  errors: ['PRODUCT_INVALID', ...BINDING_ERRORS],
})

export const rollbackChannel = environmentOperation({
  method: 'POST',
  path: '/channels/:channel/rollback',
  name: 'rollbackChannel',
  summary: 'Binds a Channel to a Release that it was bound to before.',
  capability: 'channels:promote',
  body: { schema: RollbackRequest },
  // A lost response is reconciled with the status.
  replay: 'unsafe',
  replies: { 200: Promoted },
  errors: [...BINDING_ERRORS],
})

export const channelOperations = { promoteRelease, rollbackChannel }

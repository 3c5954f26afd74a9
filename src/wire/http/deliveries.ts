/** Answers to other services (contract/wire.md, HTTP mounts). */
import { idField } from '../fields.ts'
import { type Infer, schema } from '../schema.ts'

/** The answer to a delivery that is stored, also to a repeat. */
export const HookAccepted = schema({
  version: '1',
  status: "'accepted'",
  requestId: idField('req'),
  /** The scheduled work of the first delivery of the event. */
  deliveryId: idField('sch'),
})
export type HookAccepted = Infer<typeof HookAccepted>

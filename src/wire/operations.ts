/** What a change that carried an Operation ID came to (wire decisions, section 3). */
import * as z from 'zod'
import { idField, Micros, U64 } from './fields.ts'

export const OPERATION_ID_HEADER = 'idempotency-key'

export const OperationField = z.strictObject({
  version: z.literal(1),
  operationId: idField('opn'),
  /** `<resource>.<verb>`. */
  kind: z.string().max(128),
  outcome: z.literal('applied'),
  replayed: z.boolean(),
  revision: U64,
  createdAtMicros: Micros,
})
export type OperationField = z.infer<typeof OperationField>

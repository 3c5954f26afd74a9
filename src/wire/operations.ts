/** What a change that carried an Operation ID came to (wire decisions, section 3). */
import { idField, Micros, U64 } from './fields.ts'
import { message } from './schema.ts'

export const OPERATION_ID_HEADER = 'idempotency-key'

export const OperationField = message({
  version: '1',
  operationId: idField('opn'),
  /** `<resource>.<verb>`. */
  kind: 'string <= 128',
  outcome: "'applied'",
  replayed: 'boolean',
  revision: U64,
  createdAtMicros: Micros,
})
export type OperationField = typeof OperationField.infer

/** Outcome of a change with an Operation ID (contract/wire.md, Operations with an Operation ID). */
import { idField, Micros, textUpTo, U64 } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const OPERATION_ID_HEADER = 'idempotency-key'

export const OperationField = schema({
  version: '1',
  operationId: idField('opn'),
  /** `<resource>.<verb>`. */
  kind: textUpTo(128),
  outcome: "'applied'",
  replayed: 'boolean',
  revision: U64,
  createdAtMicros: Micros,
})
export type OperationField = Infer<typeof OperationField>

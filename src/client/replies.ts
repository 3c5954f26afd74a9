/** The answer of a Function call (Document 2, Success response). */
import { idField, U64 } from '../wire/fields.ts'
import { message } from '../wire/schema.ts'

/** `result` is a tagged value, checked by value/tagged.ts. */
export const Invoked = message({
  version: '1',
  status: "'ok'",
  requestId: idField('req'),
  releaseId: idField('rel'),
  result: 'unknown',
  metadata: message({ kind: "'query'", snapshotSequence: U64.or('null') })
    .or({
      kind: "'mutation'",
      commitSequence: U64.or('null'),
      replayed: 'boolean',
      attempts: 'number.integer > 0',
    })
    .or({ kind: "'action'", schedulesCreated: U64 }),
})
export type Invoked = typeof Invoked.infer

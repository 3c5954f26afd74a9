/** The error envelope of both origins (Document 2, Error envelope). */
import { idField } from './fields.ts'
import { message } from './schema.ts'

const ErrorField = message({
  /** What a caller branches on. */
  code: 'string <= 128',
  message: 'string',
  /** Whether the same request may succeed later. */
  retryable: 'boolean',
})

const Envelope = message({ version: '1', status: "'error'", requestId: idField('req') })

export const ApplicationError = Envelope.merge({ error: ErrorField })

/** Violations help an operator and would help an attacker of an application. */
export const ManagementError = Envelope.merge({
  error: ErrorField.merge({
    'violations?': message({ path: 'string', rule: 'string <= 200' }).array(),
  }),
})

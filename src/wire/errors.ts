/** The error envelope of both origins (contract/application.md, Error envelope). */
import { idField, textUpTo } from './fields.ts'
import { schema } from './schema.ts'

const ErrorField = schema({
  /** Stable identifier of the error, for programs. */
  code: textUpTo(128),
  message: 'string',
  /** True if the same request may succeed later. */
  retryable: 'boolean',
})

const Envelope = schema({
  version: '1',
  status: "'error'",
  requestId: idField('req'),
})

export const ApplicationError = schema({ '...': Envelope, error: ErrorField })

/** Errors for operators list violations, which would help attackers of applications. */
export const ManagementError = schema({
  '...': Envelope,
  error: {
    '...': ErrorField,
    'violations?': [{ path: 'string', rule: textUpTo(200) }, '[]'],
  },
})

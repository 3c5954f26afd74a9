/** The error envelope of both origins (Document 2, Error envelope). */
import * as z from 'zod'
import { idField } from './fields.ts'

const ErrorField = z.strictObject({
  /** What a caller branches on. */
  code: z.string().max(128),
  message: z.string(),
  /** Whether the same request may succeed later. */
  retryable: z.boolean(),
})

const Envelope = z.strictObject({
  version: z.literal(1),
  status: z.literal('error'),
  requestId: idField('req'),
})

export const ApplicationError = Envelope.extend({ error: ErrorField })

/** Violations help an operator and would help an attacker of an application. */
export const ManagementError = Envelope.extend({
  error: ErrorField.extend({
    violations: z
      .strictObject({ path: z.string(), rule: z.string().max(200) })
      .array()
      .exactOptional(),
  }),
})

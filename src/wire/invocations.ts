/** Envelopes of Function calls (Document 2, Request envelope and Success response). */
import * as z from 'zod'
import { idField, U64 } from './fields.ts'

/** A tagged value (Document 2, Canonical tagged values), checked by value/tagged.ts. */
const TaggedField = z.unknown().meta({ title: 'TaggedValue' })
/** One that is an object. */
const TaggedObjectField = z.unknown().meta({ title: 'TaggedObject' })

/** Of a Query or an Action. */
export const CallRequest = z.strictObject({
  version: z.literal(1),
  target: z.string().max(128),
  function: z.string().max(512),
  arguments: TaggedObjectField,
})

export const MutationRequest = z.strictObject({
  version: z.literal(1),
  target: z.string().max(128),
  function: z.string().max(512),
  arguments: TaggedObjectField,
  operationId: idField('opn'),
})

const Answer = z.strictObject({
  version: z.literal(1),
  status: z.literal('ok'),
  requestId: idField('req'),
  releaseId: idField('rel'),
  result: TaggedField,
})

const QueryMetadata = z.strictObject({
  kind: z.literal('query'),
  /** null where no data was read. */
  snapshotSequence: U64.nullable(),
})

const MutationMetadata = z.strictObject({
  kind: z.literal('mutation'),
  /** null where nothing was written. */
  commitSequence: U64.nullable(),
  replayed: z.boolean(),
  /** With the runs that lost against other Mutations. */
  attempts: z.int().min(1),
})

const ActionMetadata = z.strictObject({ kind: z.literal('action'), schedulesCreated: U64 })

export const QueryAnswer = Answer.extend({ metadata: QueryMetadata })
export const MutationAnswer = Answer.extend({ metadata: MutationMetadata })
export const ActionAnswer = Answer.extend({ metadata: ActionMetadata })

/** The answer of any call. */
export const Invoked = Answer.extend({
  metadata: z.discriminatedUnion('kind', [QueryMetadata, MutationMetadata, ActionMetadata]),
})
export type Invoked = z.infer<typeof Invoked>

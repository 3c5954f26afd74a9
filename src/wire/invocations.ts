/** Envelopes of Function calls (Document 2, Request envelope and Success response). */
import * as z from 'zod'
import { FUNCTION_NAME } from '../value/manifest.ts'
import { idField, TargetField, U64 } from './fields.ts'
import { documented } from './schema.ts'

/** A tagged value (Document 2, Canonical tagged values), checked by value/tagged.ts. */
const TaggedField = z.unknown().meta({ title: 'TaggedValue' })
/** One that is an object. */
const TaggedObjectField = z.unknown().meta({ title: 'TaggedObject' })

/** Read as any text that is not long: what is no name is told from one that is not found. */
const FunctionNameField = documented(z.string().max(512), {
  pattern: FUNCTION_NAME.source,
  description: 'the name of a public Function such as messages.list',
})

/** Of a Query or an Action. */
export const CallRequest = z.strictObject({
  version: z.literal(1),
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
})

export const MutationRequest = z.strictObject({
  version: z.literal(1),
  target: TargetField,
  function: FunctionNameField,
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

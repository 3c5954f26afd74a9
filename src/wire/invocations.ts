/**
 * Envelopes of Function calls (contract/application.md, Request envelope; contract/application.md,
 * Success response).
 */
import { FUNCTION_NAME } from '../value/manifest.ts'
import { documented, idField, integer, TargetField, textUpTo, U64 } from './fields.ts'
import { rule } from './rules.ts'
import { type Infer, schema } from './schema.ts'

/**
 * A tagged value (contract/application.md, Canonical tagged values), checked by value/tagged.ts.
 */
export const TaggedField = schema(['unknown', '@', { title: 'TaggedValue' }])
/** A tagged value that is an object. */
export const TaggedObjectField = schema(['unknown', '@', { title: 'TaggedObject' }])

/** A short text. The look-up distinguishes invalid names from unknown ones. */
export const FunctionNameField = documented(textUpTo(512), {
  pattern: FUNCTION_NAME.source,
  description: 'the name of a public Function such as messages.list',
})

/** Envelope of a Query or an Action. */
export const CallRequest = schema({
  version: '1',
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
})

export const MutationRequest = schema({
  version: '1',
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
  operationId: idField('opn'),
})

const Answer = schema({
  version: '1',
  status: "'ok'",
  requestId: idField('req'),
  releaseId: idField('rel'),
  result: TaggedField,
})

const QueryMetadata = schema({
  kind: "'query'",
  /** Null for a Query that read no data. */
  snapshotSequence: [U64, '|', 'null'],
})

const MutationMetadata = schema({
  kind: "'mutation'",
  /** Null for a Mutation that wrote nothing. */
  commitSequence: [U64, '|', 'null'],
  replayed: 'boolean',
  /** Number of runs, including those that conflicted with other Mutations. */
  attempts: integer(1),
})

const ActionMetadata = schema({ kind: "'action'", schedulesCreated: U64 })

export const QueryAnswer = schema({ '...': Answer, metadata: QueryMetadata })
export const MutationAnswer = schema({ '...': Answer, metadata: MutationMetadata })
export const ActionAnswer = schema({ '...': Answer, metadata: ActionMetadata })

/** Arguments in plain JSON. The Function decides the types (contract/wire.md, Plain calls). */
export const PlainArguments = schema([
  'object',
  ':',
  rule('an object', (value: object) => !Array.isArray(value)),
])

const PlainResponse = schema({
  version: '1',
  status: "'ok'",
  requestId: idField('req'),
  /** Plain JSON of the type that the Function declares. */
  result: 'unknown',
})

const PlainMutationMetadata = schema({ '...': MutationMetadata, operationId: idField('opn') })

export const PlainQueryAnswer = schema({ '...': PlainResponse, metadata: QueryMetadata })
/** The response of any call in plain JSON. */
export const PlainAnswer = schema({
  '...': PlainResponse,
  metadata: [[QueryMetadata, '|', PlainMutationMetadata], '|', ActionMetadata],
})

/** A call by an operator. */
export const InvocationRequest = schema({
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
  /** The operation of a Mutation; the server makes one where it is absent. */
  'operationId?': idField('opn'),
})

export const OperatorInvoked = schema({
  '...': Answer,
  invocationId: idField('ivc'),
  metadata: [[QueryMetadata, '|', PlainMutationMetadata], '|', ActionMetadata],
})
export type OperatorInvoked = Infer<typeof OperatorInvoked>

/** The response of any call. */
export const Invoked = schema({
  '...': Answer,
  metadata: [[QueryMetadata, '|', MutationMetadata], '|', ActionMetadata],
})
export type Invoked = Infer<typeof Invoked>

/** Envelopes of Function calls (Document 2, Request envelope and Success response). */
import { idField, U64 } from './fields.ts'
import { message } from './schema.ts'

/** A tagged value (Document 2, Canonical tagged values), checked by value/tagged.ts. */
const TaggedField = message('unknown').configure({ title: 'TaggedValue' })
/** One that is an object. */
const TaggedObjectField = message('unknown').configure({ title: 'TaggedObject' })

/** Of a Query or an Action. */
export const CallRequest = message({
  version: '1',
  target: 'string <= 128',
  function: 'string <= 512',
  arguments: TaggedObjectField,
})

export const MutationRequest = message({
  version: '1',
  target: 'string <= 128',
  function: 'string <= 512',
  arguments: TaggedObjectField,
  operationId: idField('opn'),
})

const Answer = message({
  version: '1',
  status: "'ok'",
  requestId: idField('req'),
  releaseId: idField('rel'),
  result: TaggedField,
})

export const QueryAnswer = Answer.merge({
  /** null where no data was read. */
  metadata: message({ kind: "'query'", snapshotSequence: U64.or('null') }),
})

export const MutationAnswer = Answer.merge({
  metadata: message({
    kind: "'mutation'",
    /** null where nothing was written. */
    commitSequence: U64.or('null'),
    replayed: 'boolean',
    /** With the runs that lost against other Mutations. */
    attempts: 'number.integer > 0',
  }),
})

export const ActionAnswer = Answer.merge({
  metadata: message({ kind: "'action'", schedulesCreated: U64 }),
})

/** The answer of any call. */
export const Invoked = QueryAnswer.or(MutationAnswer).or(ActionAnswer)
export type Invoked = typeof Invoked.infer

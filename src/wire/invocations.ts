/** The request envelope of Function calls (Document 2, Request envelope). */
import { message } from './schema.ts'

/** `arguments` is a tagged value, checked by value/tagged.ts. */
export const QueryRequest = message({
  version: '1',
  target: 'string <= 128',
  function: 'string <= 512',
  arguments: 'unknown',
})

export const ActionRequest = QueryRequest

export const MutationRequest = message({
  version: '1',
  target: 'string <= 128',
  function: 'string <= 512',
  arguments: 'unknown',
  operationId: 'string <= 64',
})

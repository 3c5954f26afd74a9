/** Steps of the walk over all operations: a document is inserted, read, replaced and deleted. */
import { OPERATION_ID_HEADER } from '../../src/wire/idempotency-records.ts'
import type { State } from './arbitrary-requests.ts'

/** One operation: name, status, and the required state. */
export type Step = readonly [name: string, status: number, stateOf?: () => State | Promise<State>]

const DOCUMENT_ID = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const NOTE_NAMES = { table: 'notes', documentId: DOCUMENT_ID }
const NOTE = { type: 'object', value: [{ key: 'body', value: { type: 'string', value: 'hi' } }] }

export interface Walk {
  /** Unix microseconds as decimal text. */
  readonly now: () => string
  readonly newId: (prefix: 'opn') => string
  /** Reads a text of an earlier response. */
  readonly from: (name: string, ...path: readonly (string | number)[]) => string
}

export function dataSteps({ now, newId, from }: Walk): readonly Step[] {
  return [
    [
      'insertDocument',
      201,
      () => ({
        params: { table: 'notes' },
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: {
          target: 'channel:production',
          documentId: DOCUMENT_ID,
          value: NOTE,
          changedAtMicros: now(),
        },
      }),
    ],
    [
      'queryDocuments',
      200,
      () => ({
        body: {
          target: 'channel:production',
          table: 'notes',
          index: undefined,
          range: undefined,
          after: undefined,
        },
      }),
    ],
    [
      'importDocuments',
      200,
      () => ({
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: {
          target: 'channel:production',
          table: 'notes',
          changedAtMicros: now(),
          documents: [{ documentId: DOCUMENT_ID, value: NOTE }],
        },
      }),
    ],
    [
      'compactDocuments',
      200,
      () => ({
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: {
          target: 'channel:production',
          table: 'notes',
          dryRun: false,
          after: undefined,
          changedAtMicros: now(),
        },
      }),
    ],
    ['readDocument', 200, () => ({ params: NOTE_NAMES, query: { target: 'channel:production' } })],
    [
      'replaceDocument',
      200,
      () => ({
        params: NOTE_NAMES,
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: {
          target: 'channel:production',
          value: NOTE,
          changedAtMicros: now(),
          expectedRevision: from('insertDocument', 'document', 'revision'),
        },
      }),
    ],
    [
      'deleteDocument',
      200,
      () => ({
        params: NOTE_NAMES,
        headers: { [OPERATION_ID_HEADER]: newId('opn') },
        body: {
          target: 'channel:production',
          changedAtMicros: now(),
          expectedRevision: from('replaceDocument', 'document', 'revision'),
        },
      }),
    ],
  ]
}

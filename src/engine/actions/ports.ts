/** The parts of the engine that Actions use. */
import type { SystemDocuments } from '../files/system-documents.ts'
import type { InvocationPort } from '../invocations/attempt.ts'
import type { Mutations } from '../invocations/mutations.ts'
import type { Queries } from '../invocations/queries.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import type { Requests } from './outgoing-requests.ts'

export interface ActionPort extends InvocationPort {
  readonly queries: Queries
  readonly mutations: Mutations
  readonly requests: Requests
  readonly documents: SystemDocuments
  readonly inFlight: ActiveCalls
}

/** Changes of the resources that change by compare-and-set, and the evidence about them. */
import type { Json } from '../application.ts'
import type { State } from './states.ts'

export const CHANNELS = ['production', 'staging'] as const
export const RESOURCES = [
  'channel:production',
  'channel:staging',
  'serving_policy',
  'configuration',
  'environment',
] as const

export type Resource = (typeof RESOURCES)[number]
export type ChannelResource = Extract<Resource, `channel:${string}`>

interface Expecting {
  /** Null for the change of a Channel, which has no Operation ID and is not repeated. */
  readonly operationId: string | null
  /** The expected state: the Release of a Channel or `empty`, otherwise a revision. */
  readonly expected: string
}

export interface ChannelChange extends Expecting {
  readonly resource: ChannelResource
  readonly verb: 'promote' | 'rollback'
  readonly releaseId: string
}

export interface PolicyChange extends Expecting {
  readonly resource: 'serving_policy'
  readonly verb: 'set'
  readonly mode: 'atomic' | 'weighted'
  readonly releases: readonly { readonly releaseId: string; readonly weight: number }[]
  readonly changedAtMicros: string
}

export type ConfigurationChange = Expecting & {
  readonly resource: 'configuration'
  readonly name: string
  readonly changedAtMicros: string
} & (
    | { readonly verb: 'set'; readonly kind: 'variable' | 'secret'; readonly value: string }
    | { readonly verb: 'delete' }
  )

export type EnvironmentChange = Expecting & {
  readonly resource: 'environment'
  readonly changedAtMicros: string
} & (
    | { readonly verb: 'create' | 'update'; readonly configuration: Json }
    | { readonly verb: 'archive' | 'restore' }
  )

export type Change = ChannelChange | PolicyChange | ConfigurationChange | EnvironmentChange

export interface Reply {
  readonly status: number
  readonly requestId: string
  /** The body as it was received. */
  readonly text: string
}

/** One request. Times are milliseconds of one monotonic clock. */
export interface Attempt {
  readonly sent: number
  /** Time at which the reply was complete or the connection had ended. */
  readonly received: number
  /** Null if the outcome is unknown; the request has no effect after `received`. */
  readonly reply: Reply | null
}

/** A change and all requests about it, in their order. */
export interface TrackedChange {
  readonly change: Change
  readonly attempts: readonly Attempt[]
  /** Requests to the route that returns the record of an operation. */
  readonly lookups: readonly Attempt[]
}

/** The state of one resource in a read. */
export interface Observation {
  readonly resource: Resource
  readonly sent: number
  readonly received: number
  readonly revision: number
  readonly view: Json
}

export interface AuditRecord {
  readonly operation: string
  readonly subject: string
  readonly requestId: string
}

export interface Evidence {
  /** State before the first change. */
  readonly initial: Readonly<Record<Resource, { readonly revision: number; readonly state: State }>>
  readonly tracked: readonly TrackedChange[]
  readonly observed: readonly Observation[]
  /** One record per change since the initial state, oldest first. */
  readonly audit: Readonly<Record<Resource, readonly AuditRecord[]>>
  /** Entries as the route returns them, oldest first. */
  readonly configurationHistory: readonly Json[]
}

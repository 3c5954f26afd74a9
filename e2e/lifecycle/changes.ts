/** What clients asked of the resources that change by compare-and-set, and what was seen of it. */
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
  /** null for a Channel's change: it carries none, and is not repeated. */
  readonly operationId: string | null
  /** What the change replaces: a Release or `empty` of a Channel, else a revision. */
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
  /** The body as it came. */
  readonly text: string
}

/** One request; times are milliseconds of one monotonic clock. */
export interface Attempt {
  readonly sent: number
  /** When the reply was whole, or the connection had ended. */
  readonly answered: number
  /** null: nobody knows what became of it, but nothing becomes of it from here on. */
  readonly reply: Reply | null
}

/** A change and every request about it, in their order. */
export interface Asked {
  readonly change: Change
  readonly attempts: readonly Attempt[]
  /** Of the route that tells what an operation came to. */
  readonly lookups: readonly Attempt[]
}

/** What a read showed of one resource. */
export interface Seen {
  readonly resource: Resource
  readonly sent: number
  readonly answered: number
  readonly revision: number
  readonly view: Json
}

export interface AuditRecord {
  readonly operation: string
  readonly subject: string
  readonly requestId: string
}

export interface Evidence {
  /** Before the first change. */
  readonly initial: Readonly<Record<Resource, { readonly revision: number; readonly state: State }>>
  readonly asked: readonly Asked[]
  readonly seen: readonly Seen[]
  /** One of every change since the initial state, oldest first. */
  readonly audit: Readonly<Record<Resource, readonly AuditRecord[]>>
  /** As the route answers it, oldest first. */
  readonly configurationHistory: readonly Json[]
}

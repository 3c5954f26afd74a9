/**
 * Messages of the Realtime WebSocket (contract/application.md, Events; contract/wire.md, Realtime).
 */
import { idField, integer, Micros, TargetField, text, textUpTo, U64 } from './fields.ts'
import { FunctionNameField, TaggedField, TaggedObjectField } from './invocations.ts'
import { type Infer, schema } from './schema.ts'

/** The versions of the subprotocol. A client must offer one; the server prefers the last. */
export const REALTIME_VERSIONS = [1, 2] as const
export type RealtimeVersion = (typeof REALTIME_VERSIONS)[number]

/** Returns the name of a subprotocol. */
export function realtimeProtocol(version: RealtimeVersion): string {
  return `service.realtime.v${version}`
}
/** Bytes of one message in either direction (contract/application.md, Limits). */
export const REALTIME_MESSAGE_BYTES_MAX = 64 * 1024
/** Subscriptions of one connection. */
export const REALTIME_SUBSCRIPTIONS_MAX = 1_000

const KEY_CHARACTERS_MAX = 128
const TOKEN_CHARACTERS_MAX = 16 * 1024

const SubscriptionId = text(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, underscores, dashes')
const Nonce = textUpTo(128)

const Authenticate = schema({
  type: "'authenticate'",
  applicationKey: textUpTo(KEY_CHARACTERS_MAX),
  'token?': textUpTo(TOKEN_CHARACTERS_MAX),
})

const Subscribe = schema({
  type: "'subscribe'",
  subscriptionId: SubscriptionId,
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
})

const Unsubscribe = schema({ type: "'unsubscribe'", subscriptionId: SubscriptionId })

const Ping = schema({ type: "'ping'", 'nonce?': Nonce })

/** The messages of a client. */
export const RealtimeRequest = schema([
  [
    [{ '...': Authenticate, version: '1' }, '|', { '...': Subscribe, version: '1' }],
    '|',
    { '...': Unsubscribe, version: '1' },
  ],
  '|',
  { '...': Ping, version: '1' },
])
/** The messages of a client that speaks version 2. */
export const RealtimeRequestV2 = schema([
  [
    [
      { '...': Authenticate, version: '2' },
      '|',
      // With `patches` the server may send patches in place of whole states.
      { '...': Subscribe, version: '2', 'patches?': 'boolean' },
    ],
    '|',
    { '...': Unsubscribe, version: '2' },
  ],
  '|',
  { '...': Ping, version: '2' },
])
export type RealtimeRequest = Infer<typeof RealtimeRequest> | Infer<typeof RealtimeRequestV2>
export type SubscribeRequest = Extract<RealtimeRequest, { readonly type: 'subscribe' }>

/** The version of the subprotocol, which every message of a connection has. */
const Version = schema('1 | 2')

export const AuthenticatedMessage = schema({
  version: Version,
  type: "'authenticated'",
  sessionId: 'string',
  /** Expiry of the functional token; null without one. */
  expiresAtMicros: [Micros, '|', 'null'],
  maximumSubscriptions: integer(1),
})

const StateHead = schema({
  version: Version,
  type: "'state'",
  subscriptionId: SubscriptionId,
  /** Grows by one from 1. */
  revision: U64,
  /** null if no data was read. */
  snapshotSequence: [U64, '|', 'null'],
  releaseId: idField('rel'),
})

export const StateMessage = schema({ '...': StateHead, result: TaggedField })

const EntryId = 'string'

/**
 * A state as the changes of the one before it, in the array at `path` of the result, whose entries
 * have `_id`. They are applied in the order of these fields.
 */
export const PatchMessage = schema({
  version: '2',
  type: "'patch'",
  subscriptionId: SubscriptionId,
  /** The revision that it applies to. */
  base: U64,
  revision: U64,
  snapshotSequence: [U64, '|', 'null'],
  releaseId: idField('rel'),
  path: 'string[]',
  remove: [EntryId, '[]'],
  update: [{ id: EntryId, value: TaggedField }, '[]'],
  /** `to` is the index of the entry once it is moved. */
  move: [{ id: EntryId, to: integer(0) }, '[]'],
  /** `at` is the index of the entry once it is inserted; they ascend. */
  insert: [{ at: integer(0), value: TaggedField }, '[]'],
})

/** A slice of the JSON text of a result that does not fit into one message. */
export const StatePartMessage = schema({
  '...': StateHead,
  /** The number of this part, starting at 1. */
  part: integer(1),
  parts: integer(2),
  fragment: 'string',
})

export const RealtimeErrorMessage = schema({
  version: Version,
  type: "'error'",
  /** The subscription that ends; null for the connection. */
  subscriptionId: [SubscriptionId, '|', 'null'],
  error: { code: 'string', message: 'string', retryable: 'boolean' },
})

export const ResyncMessage = schema({
  version: Version,
  type: "'resync_required'",
  subscriptionId: [SubscriptionId, '|', 'null'],
  reason: "'slow_consumer' | 'release_changed' | 'snapshot_expired' | 'server_restart'",
})
export type ResyncReason = Infer<typeof ResyncMessage>['reason']

export const PongMessage = schema({
  version: Version,
  type: "'pong'",
  'nonce?': Nonce,
  /** The sequence up to which every subscription of the connection is current. */
  snapshotSequence: [U64, '|', 'null'],
})

export const UnsubscribedMessage = schema({
  version: Version,
  type: "'unsubscribed'",
  subscriptionId: SubscriptionId,
})

export const ExpiringMessage = schema({
  version: Version,
  type: "'authorization_expiring'",
  expiresAtMicros: Micros,
})

export const ExpiredMessage = schema({ version: Version, type: "'authorization_expired'" })

export const ReconnectMessage = schema({
  version: Version,
  type: "'reconnect'",
  afterMillis: integer(0),
  reason: "'draining'",
})

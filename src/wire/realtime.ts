/**
 * Messages of the Realtime WebSocket (contract/application.md, Events; contract/wire.md, Realtime).
 */
import { idField, integer, Micros, TargetField, text, textUpTo, U64 } from './fields.ts'
import { FunctionNameField, TaggedField, TaggedObjectField } from './invocations.ts'
import { type Infer, schema } from './schema.ts'

/** The subprotocol that a client must offer. */
export const REALTIME_PROTOCOL = 'service.realtime.v1'
/** Bytes of one message in either direction (contract/application.md, Limits). */
export const REALTIME_MESSAGE_BYTES_MAX = 64 * 1024
/** Subscriptions of one connection. */
export const REALTIME_SUBSCRIPTIONS_MAX = 1_000

const KEY_CHARACTERS_MAX = 128
const TOKEN_CHARACTERS_MAX = 16 * 1024

const SubscriptionId = text(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, underscores, dashes')
const Nonce = textUpTo(128)

export const AuthenticateMessage = schema({
  version: '1',
  type: "'authenticate'",
  applicationKey: textUpTo(KEY_CHARACTERS_MAX),
  'token?': textUpTo(TOKEN_CHARACTERS_MAX),
})

export const SubscribeMessage = schema({
  version: '1',
  type: "'subscribe'",
  subscriptionId: SubscriptionId,
  target: TargetField,
  function: FunctionNameField,
  arguments: TaggedObjectField,
})

export const UnsubscribeMessage = schema({
  version: '1',
  type: "'unsubscribe'",
  subscriptionId: SubscriptionId,
})

export const PingMessage = schema({ version: '1', type: "'ping'", 'nonce?': Nonce })

/** The messages of a client. */
export const RealtimeRequest = schema([
  [[AuthenticateMessage, '|', SubscribeMessage], '|', UnsubscribeMessage],
  '|',
  PingMessage,
])
export type RealtimeRequest = Infer<typeof RealtimeRequest>

export const AuthenticatedMessage = schema({
  version: '1',
  type: "'authenticated'",
  sessionId: 'string',
  /** Expiry of the functional token; null without one. */
  expiresAtMicros: [Micros, '|', 'null'],
  maximumSubscriptions: integer(1),
})

const StateHead = schema({
  version: '1',
  type: "'state'",
  subscriptionId: SubscriptionId,
  /** Grows by one from 1. */
  revision: U64,
  /** null if no data was read. */
  snapshotSequence: [U64, '|', 'null'],
  releaseId: idField('rel'),
})

export const StateMessage = schema({ '...': StateHead, result: TaggedField })

/** A slice of the JSON text of a result that does not fit into one message. */
export const StatePartMessage = schema({
  '...': StateHead,
  /** The number of this part, starting at 1. */
  part: integer(1),
  parts: integer(2),
  fragment: 'string',
})

export const RealtimeErrorMessage = schema({
  version: '1',
  type: "'error'",
  /** The subscription that ends; null for the connection. */
  subscriptionId: [SubscriptionId, '|', 'null'],
  error: { code: 'string', message: 'string', retryable: 'boolean' },
})

export const ResyncMessage = schema({
  version: '1',
  type: "'resync_required'",
  subscriptionId: [SubscriptionId, '|', 'null'],
  reason: "'slow_consumer' | 'release_changed' | 'snapshot_expired' | 'server_restart'",
})
export type ResyncReason = Infer<typeof ResyncMessage>['reason']

export const PongMessage = schema({
  version: '1',
  type: "'pong'",
  'nonce?': Nonce,
  /** The sequence up to which every subscription of the connection is current. */
  snapshotSequence: [U64, '|', 'null'],
})

export const UnsubscribedMessage = schema({
  version: '1',
  type: "'unsubscribed'",
  subscriptionId: SubscriptionId,
})

export const ExpiringMessage = schema({
  version: '1',
  type: "'authorization_expiring'",
  expiresAtMicros: Micros,
})

export const ExpiredMessage = schema({ version: '1', type: "'authorization_expired'" })

export const ReconnectMessage = schema({
  version: '1',
  type: "'reconnect'",
  afterMillis: integer(0),
  reason: "'draining'",
})

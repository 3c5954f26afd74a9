/** Resolves the subscriptions of a connection to Queries, by the rules of a Query call. */
import type { Fault } from '../../../errors/fault.ts'
import type { MemoryShare } from '../../../system/memory/memory-budget.ts'
import type { RealtimeVersion } from '../../../wire/realtime.ts'
import { checkPolicy, getPublicFunction } from '../call-admission.ts'
import { admittedPrincipal } from '../callers.ts'
import type { Gateway } from '../gateway.ts'
import type { Authorization, OpenedBy } from './authorizations.ts'
import type { CurrentSequence } from './current-sequence.ts'
import type { OutgoingMessages } from './outgoing-messages.ts'
import type { RealtimeSubscription, SubscriptionPort } from './realtime-subscription.ts'
import type { Traffic } from './traffic.ts'

export interface SubscriptionEvents {
  readonly outgoing: OutgoingMessages
  readonly traffic: Traffic
  readonly current: CurrentSequence
  readonly memory: MemoryShare
  readonly onFailure: (subscription: RealtimeSubscription, fault: Fault) => void
}

/** The connection of the subscriptions. */
export interface AuthorizedConnection {
  readonly gateway: Gateway
  readonly incoming: OpenedBy
  readonly version: RealtimeVersion
  /** The authorization; not null once the connection has a subscription. */
  readonly authorization: Authorization | null
}

export function subscriptionPort(
  connection: AuthorizedConnection,
  { outgoing, traffic, current, memory, onFailure }: SubscriptionEvents,
): SubscriptionPort {
  const { gateway, incoming } = connection
  return {
    memory,
    version: connection.version,
    async resolve(request) {
      const { caller, principal } = connection.authorization!
      // All subscriptions of a principal, or of a connection without one, get the same Release.
      const affinity = () => `${caller.credentialId}/${principal?.key ?? incoming.requestId}`
      const release = await gateway.resolveTarget(request.target, caller, { affinity })
      const definition = getPublicFunction(release, request.function, 'query')
      checkPolicy(caller, definition, 'query')
      return { release, definition, principal: admittedPrincipal(definition.auth, principal) }
    },
    watch(request, resolved, observer) {
      const { clientId, credentialId } = connection.authorization!.caller
      const invocationId = gateway.system.ids.make('ivc')
      const { requestId } = incoming
      const context = { requestId, invocationId, clientId, credentialId }
      const call = { ...resolved, arguments: request.arguments, context }
      return gateway.engine.watch({ ...call, memory }, observer)
    },
    isBlocked: () => outgoing.isBlocked,
    progressed: (subscription) => current.update(subscription),
    hasMessages: (subscription) => outgoing.enqueue(subscription),
    failed: onFailure,
    onState: (patch) => traffic.stateSent(patch),
    onResync: () => traffic.resyncSent(),
  }
}

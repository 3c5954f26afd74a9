/** A request to the application origin, and the application that sent it. */
import type { CredentialName } from '../../product/application-clients/application-keys.ts'
import type { System } from '../../system/system.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { Principal } from '../../value/identities.ts'
import type { ClientId, CredentialId, InvocationId, ReleaseId, RequestId } from '../../value/ids.ts'
import type { ClientKind } from '../../value/manifest.ts'
import type { PeerBinding } from '../rate-limits.ts'
import type { Sender } from '../transfers/senders.ts'
import type { Upgrade } from './sockets.ts'

/** An Application Key that was verified with this request. */
export interface ApplicationCaller {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  readonly kind: ClientKind | 'development'
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
}

/** The reason why a text is not an active Application Key. Only the log shows it. */
export interface KeyRejection {
  readonly reason: string
  /** The credential that the key belonged to; null for a key that is unknown. */
  readonly credential: CredentialName | null
}

/** The facts and controls of a request that the listener has. Each one costs a look-up. */
export interface ApplicationBinding extends PeerBinding {
  /** Suspends the idle timeout of the connection. Call it after the body was read. */
  takeTime(): void
  /** Restores the idle timeout, which otherwise stays suspended for later requests. */
  returnTime(): void
  /**
   * Sets the idle timeout of the connection. The runtime overwrites it when it starts to send a
   * file, so call this after that.
   */
  setTime(seconds: number): void
  /** Returns whether the response was sent, or its connection ended. */
  isAnswered(): boolean
  /**
   * Bounds the bytes a second that the system sends on the connection; null for no bound. The bound
   * stays for later responses. Does nothing on a system without such a bound.
   */
  setRate(bytesPerSecond: number | null): void
  /** True if the response may name the bytes of a file, which another process sends. */
  readonly namesBytes: boolean
  /** Turns the connection into a WebSocket; returns false if its key header is malformed. */
  upgrade(upgrade: Upgrade): boolean
}

/** State of one request. Its fields are set as the steps of the request complete. */
export interface Incoming extends Sender {
  readonly request: Request
  readonly requestId: RequestId
  readonly binding: Partial<ApplicationBinding>
  /** The authenticated application; null until its key was verified. */
  caller: ApplicationCaller | null
  /** The ID of the invocation, which failures report; null until the invocation exists. */
  invocationId: InvocationId | null
  /** The target as the envelope names it; null until the envelope was read. */
  target: string | null
  /** The Release of the target; null until the target was resolved. */
  releaseId: ReleaseId | null
  function: string | null
  /** The span of the request, once its key is authenticated; null if nothing is traced. */
  trace: Span | null
  /** Credential of a rejected key that was active before. */
  rejectedKey?: CredentialName | null
  /** Verification of the functional token, which runs once for each request. */
  presented?: Promise<Principal>
}

/** Creates the state of a request that arrives. */
export function createIncoming(
  { system }: { readonly system: Pick<System, 'ids'> },
  request: Request,
  binding: Partial<ApplicationBinding>,
): Incoming {
  return {
    request,
    requestId: system.ids.make('req'),
    binding,
    caller: null,
    bodyMemory: null,
    invocationId: null,
    target: null,
    releaseId: null,
    function: null,
    trace: null,
  }
}

/**
 * A route of the management origin is an operation with its handler. mount.ts runs the same steps
 * for each route.
 */
import type { Actor } from '../../identity/actor.ts'
import type { CompressedForms } from '../../system/compression.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import type { EnvironmentId, OperationId, ProjectId, RequestId } from '../../value/ids.ts'
import type {
  Body,
  Headers,
  JsonBody,
  ManagementOperation,
  Operation,
  OperationIdUse,
  OptionalHeader,
  PublicAccess,
  Replies,
  ReplyStatus,
} from '../../wire/operations/operation.ts'
import type { Params } from '../../wire/operations/parameters.ts'
import type { Infer, Schema } from '../../wire/schema.ts'
import type { TransferPace } from '../transfers/transfer-pace.ts'
import type { TransferTurns } from '../transfers/transfer-turns.ts'

/** Response with `body` as JSON, or with text, lines or a file. Without them, it has no body. */
export interface Reply {
  readonly status: ReplyStatus
  readonly body?: object
  readonly text?: string
  /** The kept compressed forms of a text that many requests get. */
  readonly compressed?: CompressedForms
  /** Chunks of whole lines. The next one is requested once the peer has taken the last. */
  readonly lines?: AsyncGenerator<string>
  /** A response with bytes and headers of its own. */
  readonly file?: Response
  /** Media type of the text or the lines, with its parameters. */
  readonly contentType?: string
}

/** The return type of a handler with these replies. */
export type ReplyOf<R extends Replies> = {
  readonly status: keyof R & ReplyStatus
} & ([BodyOf<R>] extends [never]
  ? { readonly file?: Response }
  :
      | { readonly body: BodyOf<R> }
      | {
          readonly text: string
          readonly contentType: string
          readonly compressed?: CompressedForms
        }
      | { readonly lines: AsyncGenerator<string>; readonly contentType: string })
type BodyOf<R extends Replies> = {
  [S in keyof R]: R[S] extends Schema<infer B> ? B : never
}[keyof R]

type HeaderValue<S> = S extends OptionalHeader ? string | null : Infer<S>

/** The idle timeout of the connection of a request; without a listener there is none. */
export interface ConnectionTimes {
  /** Suspends the timeout. Call it after the body was read. */
  readonly takeTime?: () => void
  readonly returnTime?: () => void
}

/** Argument of every handler. `actor` is null on a public route. */
export interface Call<
  A,
  P extends string,
  T,
  K extends OperationIdUse = 'none',
  Q = unknown,
  H extends Headers = Headers,
> {
  readonly app: A
  readonly actor: Actor
  readonly params: Params<P>
  readonly query: Q
  readonly headers: { readonly [N in keyof H]: HeaderValue<H[N]> }
  readonly body: T
  readonly operationId: { none: null; optional: OperationId | null; required: OperationId }[K]
  readonly request: Request
  readonly requestId: RequestId
  /** The span of the request; null if nothing is traced. */
  readonly trace: Span | null
  /** Enforces the minimum rate of a body that the handler reads itself. */
  readonly pace: TransferPace
  readonly connection: ConnectionTimes
  /** Turns of the bytes of files between calls. */
  readonly turns: TransferTurns
  /**
   * Runs `work` once, while locks keep the caller's authorization for this route from changing. A
   * handler that read a body itself, or waited, commits inside `work`.
   */
  readonly authorized: <W>(work: () => W) => Promise<W>
}

export interface Route<A> extends ManagementOperation {
  /** Throws when the caller of a public route is not authorized, before query and body are read. */
  readonly admit: Admit<A> | null
  /**
   * Returns the name of the credential in the body of a public route; null for one that this server
   * did not issue. Causes no look-up. A recognized credential is limited by its own use, not by
   * that of its peer address.
   */
  readonly recognize: Recognize<A, unknown> | null
  /** Handler with erased types; mount passes an Operation ID as `operationId` requires. */
  readonly handle: (call: Call<A, string, unknown, 'required'>) => Promise<Reply> | Reply
}

type Admit<A> = (call: Pick<Call<A, string, unknown>, 'app' | 'request'>) => void
type Recognize<A, T> = (call: Pick<Call<A, string, T>, 'app' | 'body'>) => string | null

/** Value of a body that mount has read; undefined where the handler reads the stream, if any. */
type BodyValue<B extends Body> = B extends JsonBody<infer T> ? T : undefined

type Handle<A, O> =
  O extends Operation<infer X, infer P, infer B, infer K, infer Q, infer H, infer R>
    ? (
        call: X extends PublicAccess
          ? Omit<Call<A, P, BodyValue<B>, K, Q, H>, 'actor' | 'authorized'>
          : Call<A, P, BodyValue<B>, K, Q, H>,
      ) => Promise<ReplyOf<R>> | ReplyOf<R>
    : never

/** The handler of an operation; that of a public one may have steps before it. */
type Handler<A, O extends Operation> =
  | Handle<A, O>
  | (O extends Operation<PublicAccess>
      ? {
          readonly admit?: Admit<A>
          readonly recognize?: Recognize<A, BodyValue<O['body']>>
          readonly handle: Handle<A, O>
        }
      : never)

/** Creates the routes of these operations. The compiler demands exactly one handler for each. */
export function bind<A, O extends { readonly [name: string]: ManagementOperation }>(
  operations: O,
  handlers: { readonly [N in keyof O]: Handler<A, O[N]> },
): Route<A>[] {
  return Object.entries(operations).map(([name, operation]) => {
    const handler = handlers[name] as ErasedHandler<A>
    const {
      admit = null,
      recognize = null,
      handle,
    } = typeof handler === 'function' ? { handle: handler } : handler
    return { ...operation, admit, recognize, handle }
  })
}

/** A handler after the compiler checked it against its operation. */
type ErasedHandler<A> =
  | Route<A>['handle']
  | (Pick<Route<A>, 'handle'> & Partial<Pick<Route<A>, 'admit' | 'recognize'>>)

/** Authenticates the sessions of operators. */
export interface Sessions {
  /**
   * Returns a name for an access token that this server issued, null for any other text. Causes no
   * look-up. The token may have expired or been revoked.
   */
  recognize(accessToken: string): string | null
  /** Throws PLATFORM_AUTHENTICATION_FAILED. Reloads session and grants on every call. */
  authenticate(accessToken: string): Promise<Actor>
  /**
   * Runs `work` once with the current grants, while the actor's session, operator and grants cannot
   * change. Throws PLATFORM_AUTHENTICATION_FAILED where the session has ended.
   */
  whileAuthorized<T>(actor: Actor, work: (current: Actor) => T): Promise<T>
}

/** The parts of the application that mount itself uses. */
export interface ManagementCore {
  readonly sessions: Sessions
  /** The one Environment that this server composes; null if no Product root is configured. */
  readonly environment: {
    readonly projectId: ProjectId
    readonly environmentId: EnvironmentId
  } | null
}

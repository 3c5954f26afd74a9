/**
 * A route of the management origin is data with one handler. Hono, the access matrix of the tests
 * and the documentation use the same arrays. mount.ts runs the same steps for each route.
 */
import type { TableCode } from '../../errors/codes.ts'
import type { Actor } from '../../identity/actor.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import type { Capability } from '../../value/capabilities.ts'
import type { EnvironmentId, OperationId, ProjectId, RequestId } from '../../value/ids.ts'
import { type Infer, NO_FIELDS, type Schema } from '../../wire/schema.ts'
import type { Params } from '../parameters.ts'
import type { TransferPace } from '../transfers/transfer-pace.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export const JSON_MEDIA_TYPE = 'application/json'
/** Bytes of any media type, in requests and responses. */
export const ANY_MEDIA_TYPE = '*/*'
/** One JSON document per line (https://github.com/ndjson/ndjson-spec). */
export const LINES_MEDIA_TYPE = 'application/x-ndjson'

/**
 * An ordinary JSON body (contract/management.md, Limits).
 * @limit Requests: the body of an ordinary management request
 */
export const JSON_BODY_BYTES_MAX = 16 * 1024

/**
 * Required authorization of a route. `public`: none. `operator`: a session, with `capability` at
 * some scope unless null; the handler checks the scope. `environment`: the capability at the URL's
 * Environment.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'operator'; readonly capability: Capability | null }
  | { readonly kind: 'environment'; readonly capability: Capability }

export interface Body<T> {
  readonly schema: Schema<T>
  /** Default: JSON_BODY_BYTES_MAX. */
  readonly bytesMax?: number
}

/** Whether a route takes an Operation ID in Idempotency-Key. `none` ignores the header. */
export type OperationIdUse = 'none' | 'optional' | 'required'

export type ReplyStatus = 101 | 200 | 201 | 204 | 206 | 304 | 503

/** Response with `body` as JSON, or with text, lines or a file. Without them, it has no body. */
export interface Reply {
  readonly status: ReplyStatus
  readonly body?: object
  readonly text?: string
  /** Chunks of whole lines. The next one is requested once the peer has taken the last. */
  readonly lines?: AsyncGenerator<string>
  /** A response with bytes and headers of its own. */
  readonly file?: Response
  /** Media type of the text or the lines, with its parameters. */
  readonly contentType?: string
}

/** Body schema by status of a successful response; null for no body. Failures are Faults. */
export type Replies = { readonly [S in ReplyStatus]?: Schema<object> | null }

/** The return type of a handler with these replies. */
export type ReplyOf<R extends Replies> = {
  readonly status: keyof R & ReplyStatus
} & ([BodyOf<R>] extends [never]
  ? { readonly file?: Response }
  :
      | { readonly body: BodyOf<R> }
      | { readonly text: string; readonly contentType: string }
      | { readonly lines: AsyncGenerator<string>; readonly contentType: string })
type BodyOf<R extends Replies> = {
  [S in keyof R]: R[S] extends Schema<infer B> ? B : never
}[keyof R]

/** Headers by lower-case name. A plain schema describes a required header. */
export type Headers = { readonly [name: string]: Schema<string> | OptionalHeader }

/** A header that is read as null where it is absent. */
export interface OptionalHeader {
  readonly optional: Schema<string>
}
type HeaderValue<S> = S extends OptionalHeader ? string | null : Infer<S>

/** Credential of a route: a session, a token of an OIDC provider, or the managed source's. */
export type Authority = 'operator' | 'externalIdentity' | 'managedSource'

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
  /** The span of the request; null where nothing is traced. */
  readonly trace: Span | null
  /** Enforces the minimum rate of a body that the handler reads itself. */
  readonly pace: TransferPace
  /**
   * Runs `work` once, while locks keep the caller's authorization for this route from changing. A
   * handler that read a body itself, or waited, commits inside `work`.
   */
  readonly authorized: <W>(work: () => W) => Promise<W>
}

export type Cache = 'private, no-store' | 'no-store' | 'no-store, max-age=0' | 'public, max-age=300'

export interface Route<A> {
  readonly method: Method
  readonly path: string
  /** Name of the method in a generated client: verb and noun, such as `listSessions`. */
  readonly name: string
  /** One sentence for the OpenAPI document. */
  readonly summary: string
  readonly access: Access
  /** Alternative sets of credentials; a caller presents all of one. Empty on a public route. */
  readonly authorities: readonly (readonly Authority[])[]
  /** Declared query parameters; any other, or a repeated one, is rejected. */
  readonly query: Schema<unknown>
  readonly headers: Headers
  readonly body: Body<unknown> | RawBody | null
  readonly operationId: OperationIdUse
  /** Throws when the caller of a public route is not authorized, before query and body are read. */
  readonly admit: ((call: Pick<Call<A, string, unknown>, 'app' | 'request'>) => void) | null
  /** `peer`: each peer address is limited, whatever credentials it presents. */
  readonly rate: 'peer' | 'none'
  /**
   * Returns the name of the credential in the body of a public route; null for one that this server
   * did not issue. Causes no look-up. A recognized credential is limited by its own use, not by
   * that of its peer address.
   */
  readonly recognize: Recognize<A, string, unknown> | null
  readonly cache: Cache
  /** Media types of a successful response, the default first. Failures are JSON. */
  readonly mediaTypes: readonly string[]
  readonly replies: Replies
  /** Error codes of the handler. The steps before it add theirs. */
  readonly errors: readonly TableCode[]
  /** Handler with erased types; mount passes an Operation ID as `operationId` requires. */
  readonly handle: (call: Call<A, string, unknown, 'required'>) => Promise<Reply> | Reply
}

type Recognize<A, P extends string, T> = (
  call: Pick<Call<A, P, T>, 'app' | 'body'>,
) => string | null

/** A body that is not JSON. The handler reads the stream of the request itself. */
export interface RawBody {
  readonly mediaType: string
  readonly bytesMax: number
}

interface RouteInput<
  A,
  P extends string,
  T,
  K extends OperationIdUse,
  Q,
  H extends Headers,
  R extends Replies,
> {
  readonly method: Method
  readonly path: P
  readonly name: string
  readonly summary: string
  readonly query?: Schema<Q>
  readonly headers?: H
  readonly body?: Body<T> | RawBody
  /** Default: 'none'. */
  readonly operationId?: K
  readonly cache?: Cache
  /** Default: JSON. */
  readonly mediaTypes?: readonly string[]
  readonly replies: R
  readonly errors?: readonly TableCode[]
  readonly handle: (call: Call<A, P, T, K, Q, H>) => Promise<ReplyOf<R>> | ReplyOf<R>
}

interface PublicInput<A, P extends string, T, Q, R extends Replies>
  extends Omit<RouteInput<A, P, T, 'none', Q, Headers, R>, 'handle'> {
  /** Default: 'peer', since public routes need no credential. */
  readonly rate?: 'peer' | 'none'
  readonly recognize?: Recognize<A, P, T>
  readonly admit?: Route<A>['admit']
  /** Credentials that `admit` asks for; none by default. */
  readonly authorities?: Route<A>['authorities']
  readonly handle: (
    call: Omit<Call<A, P, T, 'none', Q>, 'actor' | 'authorized'>,
  ) => Promise<ReplyOf<R>> | ReplyOf<R>
}

/** Creates a route without authentication. The access test lists these explicitly. */
export function publicRoute<A, P extends string, R extends Replies, T = undefined, Q = unknown>(
  input: PublicInput<A, P, T, Q, R>,
): Route<A> {
  const { authorities = [], admit = null, rate = 'peer' } = input
  const recognize = (input.recognize ?? null) as Route<A>['recognize']
  return { ...complete(input as Erased, { kind: 'public' }), authorities, admit, rate, recognize }
}

/**
 * Creates a route for every valid session, or only for those that hold `capability` at some scope.
 * The handler checks the scope.
 */
export function operatorRoute<
  A,
  P extends string,
  R extends Replies,
  T = undefined,
  K extends OperationIdUse = 'none',
  Q = unknown,
  H extends Headers = Headers,
>(input: RouteInput<A, P, T, K, Q, H, R> & { readonly capability?: Capability }): Route<A> {
  return complete(input as Erased, { kind: 'operator', capability: input.capability ?? null })
}

/** Prefix of every route of one Environment; mount checks `:projectId` and `:environmentId`. */
export const ENVIRONMENT_BASE = '/v1/projects/:projectId/environments/:environmentId'

/** Creates a route below ENVIRONMENT_BASE. `path` is relative to it; '' is the base itself. */
export function environmentRoute<
  A,
  P extends string,
  R extends Replies,
  T = undefined,
  K extends OperationIdUse = 'none',
  Q = unknown,
  H extends Headers = Headers,
>(input: RouteInput<A, P, T, K, Q, H, R> & { readonly capability: Capability }): Route<A> {
  const access: Access = { kind: 'environment', capability: input.capability }
  const route = complete<A>(input as Erased, access)
  return { ...route, path: ENVIRONMENT_BASE + input.path }
}

/** A route input with erased types, after the compiler checked its handler. */
type Erased = Omit<
  RouteInput<never, string, unknown, OperationIdUse, unknown, Headers, Replies>,
  'handle'
> & { readonly handle: unknown }

function complete<A>(input: Erased, access: Access): Route<A> {
  return {
    method: input.method,
    path: input.path,
    name: input.name,
    summary: input.summary,
    access,
    authorities: [['operator']],
    query: input.query ?? NO_FIELDS,
    headers: input.headers ?? {},
    body: input.body ?? null,
    operationId: input.operationId ?? 'none',
    admit: null,
    rate: 'none',
    recognize: null,
    cache: input.cache ?? 'no-store',
    mediaTypes: input.mediaTypes ?? [JSON_MEDIA_TYPE],
    replies: input.replies,
    errors: input.errors ?? [],
    handle: input.handle as Route<A>['handle'],
  }
}

/** Errors of every change of identity, in addition to its own. */
export const CHANGE_ERRORS = [
  'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
  'PLATFORM_IDENTITY_STORAGE_CORRUPT',
  'PLATFORM_UNAVAILABLE',
] as const

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
  /** The one Environment that this server composes; null where no Product root is configured. */
  readonly environment: {
    readonly projectId: ProjectId
    readonly environmentId: EnvironmentId
  } | null
}

/**
 * A route of the management origin is data with one handler. The same arrays feed Hono, the access
 * matrix of the tests and the documentation; mount.ts runs the same steps for each.
 */
import type { TableCode } from '../../errors/codes.ts'
import type { Actor } from '../../identity/actor.ts'
import type { Capability } from '../../value/capabilities.ts'
import type { EnvironmentId, OperationId, ProjectId, RequestId } from '../../value/ids.ts'
import { type Infer, NO_FIELDS, type Schema } from '../../wire/schema.ts'
import type { Params } from '../parameters.ts'
import type { TransferPace } from '../transfers/transfer-pace.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export const JSON_MEDIA_TYPE = 'application/json'
/** One JSON document per line (https://github.com/ndjson/ndjson-spec). */
export const LINES_MEDIA_TYPE = 'application/x-ndjson'

/**
 * An ordinary JSON body (Document 1, Limits).
 * @limit Requests: the body of an ordinary management request
 */
export const JSON_BODY_BYTES_MAX = 16 * 1024

/**
 * Who may call: anybody, a session (where a capability is named, one that holds it at some scope;
 * which scope it must be is the handler's rule), or a capability at the URL's Environment.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'operator'; readonly capability: Capability | null }
  | { readonly kind: 'environment'; readonly capability: Capability }

export interface Body<T> {
  readonly schema: Schema<T>
  /** Bytes; JSON_BODY_BYTES_MAX unless given. */
  readonly bytesMax?: number
}

/** Whether a route takes an Operation ID in Idempotency-Key; `none` does not look at the header. */
export type OperationIdUse = 'none' | 'optional' | 'required'

export type ReplyStatus = 101 | 200 | 201 | 204 | 503

/** JSON of `body`, or text or lines that are sent as they are; no body where there is none. */
export interface Reply {
  readonly status: ReplyStatus
  readonly body?: object
  readonly text?: string
  /** Chunks of whole lines, each asked for once the peer has taken the one before. */
  readonly lines?: AsyncGenerator<string>
  /** Of the text or the lines, with its parameters. */
  readonly contentType?: string
}

/** The body of each status that a handler answers with; null for none. Failures are Faults. */
export type Replies = { readonly [S in ReplyStatus]?: Schema<object> | null }

/** What a handler with these replies answers. */
export type ReplyOf<R extends Replies> = {
  readonly status: keyof R & ReplyStatus
} & ([BodyOf<R>] extends [never]
  ? unknown
  :
      | { readonly body: BodyOf<R> }
      | { readonly text: string; readonly contentType: string }
      | { readonly lines: AsyncGenerator<string>; readonly contentType: string })
type BodyOf<R extends Replies> = {
  [S in keyof R]: R[S] extends Schema<infer B> ? B : never
}[keyof R]

/** Headers by lower-case name, each of them required. */
export type Headers = { readonly [name: string]: Schema<string> }

/** What a caller shows on a route: its session, the token of its provider, that of the source. */
export type Authority = 'operator' | 'externalIdentity' | 'managedSource'

/** What every handler gets. `actor` is null on a public route. */
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
  readonly headers: { readonly [N in keyof H]: Infer<H[N]> }
  readonly body: T
  readonly operationId: { none: null; optional: OperationId | null; required: OperationId }[K]
  readonly request: Request
  readonly requestId: RequestId
  /** The minimum rate of a body that the handler reads itself. */
  readonly pace: TransferPace
  /**
   * Runs `work`, once, while nothing can take the caller's authorization for this route away. A
   * handler that read a body itself, or waited, commits inside of it.
   */
  readonly authorized: <W>(work: () => W) => Promise<W>
}

export type Cache = 'no-store' | 'no-store, max-age=0' | 'public, max-age=300'

export interface Route<A> {
  readonly method: Method
  readonly path: string
  /** Verb and noun, such as `listSessions`: what a generated client calls it. */
  readonly name: string
  /** One sentence. */
  readonly summary: string
  readonly access: Access
  /** What is to be shown, each of the alternatives whole; empty where nothing is. */
  readonly authorities: readonly (readonly Authority[])[]
  /** Declared query parameters; any other, or a repeated one, is refused. */
  readonly query: Schema<unknown>
  readonly headers: Headers
  readonly body: Body<unknown> | RawBody | null
  readonly operationId: OperationIdUse
  /** Of a public route: throws for who may not call it, before query and body are looked at. */
  readonly admit: ((call: Pick<Call<A, string, unknown>, 'app' | 'request'>) => void) | null
  /** `peer`: each peer address may call it so often, whoever it says it is. */
  readonly rate: 'peer' | 'none'
  /**
   * Names the credential in the body of a public route, null for one that this server did not
   * issue. Reads nothing. A recognized credential is limited by its own use, not by its peer's.
   */
  readonly recognize: Recognize<A, string, unknown> | null
  readonly cache: Cache
  /** Forms of a successful answer, the usual one first; failures are JSON. */
  readonly mediaTypes: readonly string[]
  readonly replies: Replies
  /** Codes of the handler's own failures, beside those of the steps before it. */
  readonly errors: readonly TableCode[]
  /** Erased: mount gives the Operation ID that `operationId` promises to the handler. */
  readonly handle: (call: Call<A, string, unknown, 'required'>) => Promise<Reply> | Reply
}

type Recognize<A, P extends string, T> = (
  call: Pick<Call<A, P, T>, 'app' | 'body'>,
) => string | null

/** A body that is no JSON: the handler reads the request's stream itself. */
export interface RawBody {
  readonly mediaType: string
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
  /** 'none' unless given. */
  readonly operationId?: K
  readonly cache?: Cache
  /** JSON alone unless given. */
  readonly mediaTypes?: readonly string[]
  readonly replies: R
  readonly errors?: readonly TableCode[]
  readonly handle: (call: Call<A, P, T, K, Q, H>) => Promise<ReplyOf<R>> | ReplyOf<R>
}

interface PublicInput<A, P extends string, T, Q, R extends Replies>
  extends Omit<RouteInput<A, P, T, 'none', Q, Headers, R>, 'handle'> {
  /** 'peer' unless given: what is public is cheap to call. */
  readonly rate?: 'peer' | 'none'
  readonly recognize?: Recognize<A, P, T>
  readonly admit?: Route<A>['admit']
  /** What `admit` asks for; nothing unless given. */
  readonly authorities?: Route<A>['authorities']
  readonly handle: (
    call: Omit<Call<A, P, T, 'none', Q>, 'actor' | 'authorized'>,
  ) => Promise<ReplyOf<R>> | ReplyOf<R>
}

/** A route that anybody may call; it stands in the golden list of the access test. */
export function publicRoute<A, P extends string, R extends Replies, T = undefined, Q = unknown>(
  input: PublicInput<A, P, T, Q, R>,
): Route<A> {
  const { authorities = [], admit = null, rate = 'peer' } = input
  const recognize = (input.recognize ?? null) as Route<A>['recognize']
  return { ...complete(input as Erased, { kind: 'public' }), authorities, admit, rate, recognize }
}

/**
 * A route for every valid session, or for those alone that hold `capability` at some scope; what it
 * may do there is the handler's rule.
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

/** A route below ENVIRONMENT_BASE; `path` is what follows it, '' for the base itself. */
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

/** An input once its handler was checked against what it declares. */
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

/** Of every change of identity, beside its own. */
export const CHANGE_ERRORS = [
  'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
  'PLATFORM_IDENTITY_STORAGE_CORRUPT',
  'PLATFORM_UNAVAILABLE',
] as const

/** Who a session stands for. */
export interface Sessions {
  /**
   * Names an access token that this server issued, null for any other text. Reads nothing. A token
   * that is named may be past its end or revoked.
   */
  recognize(accessToken: string): string | null
  /** Throws PLATFORM_AUTHENTICATION_FAILED. Reloads session and grants on every call. */
  authenticate(accessToken: string): Promise<Actor>
  /**
   * Runs `work`, once, while the actor's session, operator and grants cannot change, with the
   * grants of now. Throws PLATFORM_AUTHENTICATION_FAILED where the session has ended.
   */
  whileAuthorized<T>(actor: Actor, work: (current: Actor) => T): Promise<T>
}

/** What mount needs of the application beside what the handlers use. */
export interface ManagementCore {
  readonly sessions: Sessions
  /** The one Environment that this server composes; null where no Product root is configured. */
  readonly environment: {
    readonly projectId: ProjectId
    readonly environmentId: EnvironmentId
  } | null
}

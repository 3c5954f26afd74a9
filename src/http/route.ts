/**
 * A route of the management origin is data with one handler. The same arrays feed Hono, the access
 * matrix of the tests and the documentation; mount.ts runs the same steps for each.
 */
import type { Actor } from '../identity/actor.ts'
import type { Capability } from '../value/capabilities.ts'
import type { EnvironmentId, OperationId, ProjectId, RequestId } from '../value/ids.ts'
import type { Schema } from '../wire/schema.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An ordinary JSON body (Document 1, Limits). */
export const JSON_BODY_BYTES_MAX = 16 * 1024

/**
 * Who may call: anybody, a session (where a capability is named, one that holds it at some scope;
 * which scope it must be is the handler's rule), or a capability at the URL's Environment.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'operator'; readonly capability: Capability | null }
  | { readonly kind: 'environment'; readonly capability: Capability }

/** Path parameters and query parameters by name; absent query parameters are undefined. */
export type Params<P extends string> = { readonly [name in PathParam<P>]: string }
type PathParam<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathParam<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never

export interface Body<T> {
  readonly schema: Schema<T>
  /** Bytes; JSON_BODY_BYTES_MAX unless given. */
  readonly bytesMax?: number
}

/** Whether a route takes an Operation ID in Idempotency-Key; `none` does not look at the header. */
export type OperationIdUse = 'none' | 'optional' | 'required'

export interface Reply {
  readonly status: 200 | 201 | 204 | 503
  readonly body?: object
}

/** What every handler gets. `actor` is null on a public route. */
export interface Call<A, P extends string, T, K extends OperationIdUse = 'none'> {
  readonly app: A
  readonly actor: Actor
  readonly params: Params<P>
  readonly query: { readonly [name: string]: string | undefined }
  readonly body: T
  readonly operationId: { none: null; optional: OperationId | null; required: OperationId }[K]
  readonly request: Request
  readonly requestId: RequestId
}

export type Cache = 'no-store' | 'no-store, max-age=0'

export interface Route<A> {
  readonly method: Method
  readonly path: string
  readonly access: Access
  /** Declared query parameters; any other, or a repeated one, is refused. */
  readonly query: readonly string[]
  readonly body: Body<unknown> | RawBody | null
  readonly operationId: OperationIdUse
  /** Of a public route: throws for who may not call it, before query and body are looked at. */
  readonly admit: ((call: Pick<Call<A, string, unknown>, 'app' | 'request'>) => void) | null
  /** `peer`: each peer address may call it so often, whoever it says it is. */
  readonly rate: 'peer' | 'none'
  readonly cache: Cache
  /** Erased: mount gives the Operation ID that `operationId` promises to the handler. */
  readonly handle: (call: Call<A, string, unknown, 'required'>) => Promise<Reply> | Reply
}

/** A body that is no JSON: the handler reads the request's stream itself. */
export interface RawBody {
  readonly mediaType: string
}

interface RouteInput<A, P extends string, T, K extends OperationIdUse = 'none'> {
  readonly method: Method
  readonly path: P
  readonly query?: readonly string[]
  readonly body?: Body<T> | RawBody
  /** 'none' unless given. */
  readonly operationId?: K
  readonly cache?: Cache
  readonly handle: (call: Call<A, P, T, K>) => Promise<Reply> | Reply
}

type PublicInput<A, P extends string, T> = Omit<RouteInput<A, P, T>, 'handle'> & {
  /** 'peer' unless given: what is public is cheap to call. */
  readonly rate?: 'peer' | 'none'
  readonly admit?: Route<A>['admit']
  readonly handle: (call: Omit<Call<A, P, T>, 'actor'>) => Promise<Reply> | Reply
}

/** A route that anybody may call; it stands in the golden list of the access test. */
export function publicRoute<A, P extends string, T = undefined>(
  input: PublicInput<A, P, T>,
): Route<A> {
  const route = complete(input as RouteInput<A, P, T>, { kind: 'public' })
  return { ...route, rate: input.rate ?? 'peer', admit: input.admit ?? null }
}

/**
 * A route for every valid session, or for those alone that hold `capability` at some scope; what it
 * may do there is the handler's rule.
 */
export function operatorRoute<
  A,
  P extends string,
  T = undefined,
  K extends OperationIdUse = 'none',
>(input: RouteInput<A, P, T, K> & { readonly capability?: Capability }): Route<A> {
  return complete(input, { kind: 'operator', capability: input.capability ?? null })
}

/** Prefix of every route of one Environment; mount checks `:projectId` and `:environmentId`. */
export const ENVIRONMENT_BASE = '/v1/projects/:projectId/environments/:environmentId'

/** A route below ENVIRONMENT_BASE; `path` is what follows it, '' for the base itself. */
export function environmentRoute<
  A,
  P extends string,
  T = undefined,
  K extends OperationIdUse = 'none',
>(input: RouteInput<A, P, T, K> & { readonly capability: Capability }): Route<A> {
  const route = complete(input, { kind: 'environment', capability: input.capability })
  return { ...route, path: ENVIRONMENT_BASE + input.path }
}

function complete<A, P extends string, T, K extends OperationIdUse>(
  input: RouteInput<A, P, T, K>,
  access: Access,
): Route<A> {
  return {
    method: input.method,
    path: input.path,
    access,
    query: input.query ?? [],
    body: (input.body as Body<unknown> | RawBody | undefined) ?? null,
    operationId: input.operationId ?? 'none',
    admit: null,
    rate: 'none',
    cache: input.cache ?? 'no-store',
    handle: input.handle as Route<A>['handle'],
  }
}

/** What mount needs of the application beside what the handlers use. */
export interface ManagementCore {
  /** Throws PLATFORM_AUTHENTICATION_FAILED. Reloads session and grants on every call. */
  authenticate(accessToken: string): Promise<Actor>
  /** The one Environment that this server composes; null where no Product root is configured. */
  readonly environment: {
    readonly projectId: ProjectId
    readonly environmentId: EnvironmentId
  } | null
}

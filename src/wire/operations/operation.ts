/**
 * An operation is data: what a request and its responses look like, what it needs, and whether it
 * may be repeated. The server binds a handler to each one, the client sends them, and the OpenAPI
 * document and the references describe them. Its schemas load arktype with the first message alone.
 */
import type { TableCode } from '../../errors/codes.ts'
import type { Capability } from '../../value/capabilities.ts'
import { JSON_MEDIA_TYPE } from '../media-types.ts'
import { NO_FIELDS, type Schema } from '../schema.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Header of the responses to authenticated operators: the version and the commit of the server. */
export const VERSION_HEADER = 'x-service-version'

/**
 * An ordinary JSON body (contract/management.md, Limits).
 * @limit Requests: the body of an ordinary management request
 */
export const JSON_BODY_BYTES_MAX = 16 * 1024

/** Needs no session. A public operation may need other credentials: its `authorities`. */
export interface PublicAccess {
  readonly kind: 'public'
}

/** Needs a session, with `capability` at some scope unless null; the handler checks the scope. */
export interface OperatorAccess {
  readonly kind: 'operator'
  readonly capability: Capability | null
}

/** Needs a session with the capability at the Environment of the URL. */
export interface EnvironmentAccess {
  readonly kind: 'environment'
  readonly capability: Capability
}

/** Needs a development key. Such an operation belongs to the application origin. */
export interface DevelopmentAccess {
  readonly kind: 'development'
}

export type ManagementAccess = PublicAccess | OperatorAccess | EnvironmentAccess
export type Access = ManagementAccess | DevelopmentAccess

export interface JsonBody<T> {
  readonly schema: Schema<T>
  /** Default: JSON_BODY_BYTES_MAX. */
  readonly bytesMax?: number
}

/** A body that is not JSON. The handler reads the stream of the request itself. */
export interface RawBody {
  readonly mediaType: string
  readonly bytesMax: number
}

export type Body = JsonBody<unknown> | RawBody | null

/** Use of an Operation ID in Idempotency-Key by an operation. `none` ignores the header. */
export type OperationIdUse = 'none' | 'optional' | 'required'

export type ReplyStatus = 101 | 200 | 201 | 204 | 206 | 304 | 503

/**
 * Form of the body by status of a successful response: a schema, bytes of any media type, or null
 * for no body. All schemas of an operation are the same. Failures are Faults.
 */
export type Replies = { readonly [S in ReplyStatus]?: Schema<object> | 'bytes' | null }

/** Headers by lower-case name. A plain schema describes a required header. */
export type Headers = { readonly [name: string]: Schema<string> | OptionalHeader }

/** A header that is read as null if it is absent. */
export interface OptionalHeader {
  readonly optional: Schema<string>
}

/** Credential of an operation: a session, a token of an OIDC provider, or the managed source's. */
export type Authority = 'operator' | 'externalIdentity' | 'managedSource'

export type Cache = 'private, no-store' | 'no-store' | 'no-store, max-age=0' | 'public, max-age=300'

/**
 * `safe`: the request may be repeated even if it arrived. `unsafe`: a client whose response is lost
 * cannot repeat it, and looks for the outcome in another way.
 */
export type Replay = 'safe' | 'unsafe'

export interface Operation<
  X extends Access = Access,
  P extends string = string,
  B extends Body = Body,
  K extends OperationIdUse = OperationIdUse,
  Q = unknown,
  H extends Headers = Headers,
  R extends Replies = Replies,
> {
  readonly method: Method
  /** Path with `:name` for each parameter. */
  readonly path: P
  /** Name of the method in a generated client: verb and noun, such as `listSessions`. */
  readonly name: string
  /** One sentence for the OpenAPI document. */
  readonly summary: string
  readonly access: X
  /** Alternative sets of credentials; a caller presents all of one. Empty if none is needed. */
  readonly authorities: readonly (readonly Authority[])[]
  /** `peer`: each peer address is limited, regardless of its credentials. */
  readonly rate: 'peer' | 'none'
  /** Declared query parameters; any other, or a repeated one, is rejected. */
  readonly query: Schema<Q>
  readonly headers: H
  readonly body: B
  readonly operationId: K
  readonly replay: Replay
  readonly cache: Cache
  /** Media types of a successful response, the default first. Failures are JSON. */
  readonly mediaTypes: readonly string[]
  readonly replies: R
  /**
   * True if a response may be compressed. A response with a secret may not: the length of a
   * compressed text tells who can add to the text what else is in it.
   */
  readonly compresses: boolean
  /** Error codes of the handler. The steps before it add theirs. */
  readonly errors: readonly TableCode[]
  /** True if a failure may have a code that a Function declares. */
  readonly declaredErrors: boolean
  /** Milliseconds that a client waits for all attempts together; undefined for its default. */
  readonly deadlineMs: number | undefined
  /** Bytes of a response that a client reads at most; undefined for its default. */
  readonly responseBytesMax: number | undefined
}

export type ManagementOperation = Operation<ManagementAccess>

/** Prefix of every path of one Environment; the server checks its two parameters. */
export const ENVIRONMENT_BASE = '/v1/projects/:projectId/environments/:environmentId'
export type EnvironmentPath<P extends string> = `${typeof ENVIRONMENT_BASE}${P}`

interface Input<
  P extends string,
  B extends Body,
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
  readonly body?: B
  /** Default: 'none'. */
  readonly operationId?: K
  /** Default: 'safe' for a GET and with a required Operation ID, otherwise 'unsafe'. */
  readonly replay?: Replay
  readonly cache?: Cache
  /** Default: JSON. */
  readonly mediaTypes?: readonly string[]
  readonly replies: R
  /** Default: true for a GET, whose responses have no secrets. */
  readonly compresses?: boolean
  readonly errors?: readonly TableCode[]
  /** Default: false. */
  readonly declaredErrors?: boolean
  readonly deadlineMs?: number
  readonly responseBytesMax?: number
}

/** Type of a query or of headers without fields. */
export type None = Record<never, never>

/** Creates an operation without a session. The access test lists these explicitly. */
export function publicOperation<
  P extends string,
  R extends Replies,
  B extends Body = null,
  Q = None,
>(
  input: Input<P, B, 'none', Q, None, R> & {
    /** Credentials that the handler checks; none by default. */
    readonly authorities?: Operation['authorities']
    /** Default: 'peer', since most need no credential. */
    readonly rate?: Operation['rate']
  },
): Operation<PublicAccess, P, B, 'none', Q, None, R> {
  const { path, authorities = NOBODY, rate = 'peer' } = input
  return complete(input, { path, access: { kind: 'public' }, authorities, rate })
}

const NOBODY: Operation['authorities'] = []
const SESSION: Operation['authorities'] = [['operator']]

/**
 * Creates an operation for every valid session, or only for those that hold `capability` at some
 * scope. The handler checks the scope.
 */
export function operatorOperation<
  P extends string,
  R extends Replies,
  B extends Body = null,
  K extends OperationIdUse = 'none',
  Q = None,
  H extends Headers = None,
>(
  input: Input<P, B, K, Q, H, R> & { readonly capability?: Capability },
): Operation<OperatorAccess, P, B, K, Q, H, R> {
  const { path, capability = null } = input
  const access: OperatorAccess = { kind: 'operator', capability }
  return complete(input, { path, access, authorities: SESSION, rate: 'none' })
}

/** Creates an operation below ENVIRONMENT_BASE. `path` is relative; '' is the base itself. */
export function environmentOperation<
  P extends string,
  R extends Replies,
  B extends Body = null,
  K extends OperationIdUse = 'none',
  Q = None,
  H extends Headers = None,
>(
  input: Input<P, B, K, Q, H, R> & { readonly capability: Capability },
): Operation<EnvironmentAccess, EnvironmentPath<P>, B, K, Q, H, R> {
  const path = ENVIRONMENT_BASE + input.path
  const access: EnvironmentAccess = { kind: 'environment', capability: input.capability }
  return complete(input, { path, access, authorities: SESSION, rate: 'none' })
}

/** Creates an operation of the application origin that a development key opens. */
export function developmentOperation<
  P extends string,
  R extends Replies,
  B extends Body = null,
  H extends Headers = None,
>(input: Input<P, B, 'none', None, H, R>): Operation<DevelopmentAccess, P, B, 'none', None, H, R> {
  const { path } = input
  const access: DevelopmentAccess = { kind: 'development' }
  // The handlers make their own short responses.
  return complete(
    { ...input, compresses: false },
    { path, access, authorities: NOBODY, rate: 'none' },
  )
}

const NO_HEADERS: Headers = {}
const NO_ERRORS: readonly TableCode[] = []
const JSON_ALONE = [JSON_MEDIA_TYPE]

/** Fills in the defaults, which are the values of the default types. */
function complete<O extends Operation>(
  input: Input<string, Body, OperationIdUse, unknown, Headers, Replies>,
  { path, access, authorities, rate }: Pick<Operation, 'path' | 'access' | 'authorities' | 'rate'>,
): O {
  const { method, operationId = 'none' } = input
  const isSafe = method === 'GET' || operationId === 'required'
  const operation: Operation = {
    method,
    path,
    name: input.name,
    summary: input.summary,
    access,
    authorities,
    rate,
    query: input.query ?? NO_FIELDS,
    headers: input.headers ?? NO_HEADERS,
    body: input.body ?? null,
    operationId,
    replay: input.replay ?? (isSafe ? 'safe' : 'unsafe'),
    cache: input.cache ?? 'no-store',
    mediaTypes: input.mediaTypes ?? JSON_ALONE,
    replies: input.replies,
    compresses: input.compresses ?? method === 'GET',
    errors: input.errors ?? NO_ERRORS,
    declaredErrors: input.declaredErrors ?? false,
    deadlineMs: input.deadlineMs,
    responseBytesMax: input.responseBytesMax,
  }
  return operation as O
}

/** Errors of every change of identity, in addition to its own. */
export const CHANGE_ERRORS = [
  'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
  'PLATFORM_IDENTITY_STORAGE_CORRUPT',
  'PLATFORM_UNAVAILABLE',
] as const

/** Routes of `http.ts`: hooks and endpoints (contract/wire.md, HTTP mounts). */
import { HTTP_DELIVERY } from './deliveries.ts'

/** The name of a route is a key of `httpRoutes({ ... })`. */
export const ROUTE_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
/** @limit HTTP mounts: routes of a Release */
export const ROUTES_MAX = 256

export const HTTP_METHODS = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'] as const
export type HttpMethod = (typeof HTTP_METHODS)[number]

/** Bytes of the body of a delivery for a hook that does not say otherwise. */
export const HOOK_BYTES_DEFAULT = 256 * 1024
/**
 * The body is stored in base64 with the work, which is a document of at most 1 MiB.
 * @limit HTTP mounts: `maximumBytes` of a hook
 */
export const HOOK_BYTES_MAX = 512 * 1024

/** Bytes of the body of a request to an endpoint that does not say otherwise. */
export const ENDPOINT_BYTES_DEFAULT = 256 * 1024
/** @limit HTTP mounts: `maximumBytes` of an endpoint, as of every call */
export const ENDPOINT_BYTES_MAX = 2 * 1024 * 1024
/** @limit HTTP mounts: origins whose pages may call one endpoint */
export const ENDPOINT_ORIGINS_MAX = 32
/** Stands for the pages of all origins. */
export const EVERY_ORIGIN = '*'
const ORIGIN =
  /^https?:\/\/(?:\[[0-9a-f:]{2,39}\]|[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,8})(?::[0-9]{1,5})?$/
const USUAL_PORT = /^(?:https:.*:443|http:.*:80)$/

/** Returns whether the text is an origin as browsers send it. */
export function isOrigin(text: string): boolean {
  return ORIGIN.test(text) && !USUAL_PORT.test(text)
}

/** A header as `headers` of a hook names it. */
export const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/
/** @limit HTTP mounts: headers that one hook names */
export const HOOK_HEADERS_MAX = 32
/** Headers that never become part of a delivery, since they are credentials. */
export const SECRET_HEADERS: readonly string[] = [
  'authorization',
  'cookie',
  'proxy-authorization',
  'set-cookie',
]

/** Seconds by which the time of a signature may differ from that of the server. */
export const TOLERANCE_SECONDS_DEFAULT = 300
/** @limit HTTP mounts: tolerance of the time of a signature, in seconds */
export const TOLERANCE_SECONDS_MAX = 3_600

export const SIGNED_TIME_SCHEMES = ['slack', 'standardWebhooks', 'stripe'] as const
export const BODY_SCHEMES = ['github', 'twilio'] as const
export const HMAC_ALGORITHMS = ['sha1', 'sha256', 'sha512'] as const
export const HMAC_ENCODINGS = ['base64', 'hex'] as const

/** The rule by which the server verifies that a request comes from the expected service. */
export type SignatureManifest =
  | {
      readonly scheme: (typeof SIGNED_TIME_SCHEMES)[number]
      /** Name of the secret in the configuration of the Environment. */
      readonly secret: string
      readonly toleranceSeconds: number
    }
  | { readonly scheme: (typeof BODY_SCHEMES)[number]; readonly secret: string }
  | HmacManifest
  | {
      readonly scheme: 'jwt'
      /** The issuer of one of the JWT providers of the Environment. */
      readonly issuer: string
      /** Exact `sub`; absent for any. */
      readonly subject?: string
    }

/** A digest of the body, or of the time, a full stop and the body. */
export interface HmacManifest {
  readonly scheme: 'hmac'
  readonly secret: string
  /** The header with the digest. */
  readonly header: string
  readonly algorithm: (typeof HMAC_ALGORITHMS)[number]
  readonly encoding: (typeof HMAC_ENCODINGS)[number]
  /** Text before the digest, such as `sha256=`; empty for none. */
  readonly prefix: string
  /** The header with Unix seconds; both are absent where the time is not signed. */
  readonly timestampHeader?: string
  readonly toleranceSeconds?: number
}

/** A request of another service that becomes a scheduled call, once for each event. */
export interface HookManifest {
  readonly kind: 'hook'
  readonly name: string
  /** The path below the mount, such as `/stripe` (paths.ts). */
  readonly path: string
  /** Sorted. */
  readonly methods: readonly HttpMethod[]
  readonly maximumBytes: number
  /** Names, in lower case, of the headers that a delivery has; sorted. */
  readonly headers: readonly string[]
  /** Null for a hook that accepts every request. */
  readonly verify: SignatureManifest | null
  /** True if code of the route tells which deliveries are the same event. */
  readonly hasOnce: boolean
  /** `result` where the service is answered with the result; absent where it is not. */
  readonly reply?: 'result'
  /** The internal Mutation or Action that handles a delivery. */
  readonly function: string
}

/** A request of a program that calls a Function and is answered with its result. */
export interface EndpointManifest {
  readonly kind: 'endpoint'
  readonly name: string
  /** The path below the mount. Each of its parameters is an argument of the Function. */
  readonly path: string
  /** Sorted. A Mutation and an Action have no GET. */
  readonly methods: readonly HttpMethod[]
  readonly maximumBytes: number
  /** The origins whose pages may call it, sorted, or `*` alone; empty for none. */
  readonly origins: readonly string[]
  /** Any Function of the Release, also an internal one. */
  readonly function: string
}

export type HttpRouteManifest = HookManifest | EndpointManifest

/** A hook as the code declares it. */
export interface DefinedHook extends Omit<HookManifest, 'hasOnce'> {
  readonly once: ((delivery: unknown) => unknown) | null
}

/** A route as the code declares it. */
export type DefinedRoute = DefinedHook | EndpointManifest

export function describeRoute(route: DefinedRoute): HttpRouteManifest {
  if (route.kind === 'endpoint') return route
  const { once, ...hook } = route
  return { ...hook, hasOnce: once !== null }
}

/** The arguments of the handler of a hook. */
export const HOOK_ARGUMENTS = { delivery: HTTP_DELIVERY }

/** Returns the name by which a runner finds the code of `once`; no Function has such a name. */
export function onceFunction(name: string): string {
  return `http.ts:${name}`
}

/** Headers that the deliveries of a scheme have beside those that the author names. */
const SCHEME_HEADERS: Readonly<Record<SignatureManifest['scheme'], readonly string[]>> = {
  github: ['x-github-delivery', 'x-github-event', 'x-github-hook-id'],
  hmac: [],
  jwt: [],
  slack: ['x-slack-request-timestamp', 'x-slack-retry-num', 'x-slack-retry-reason'],
  standardWebhooks: ['webhook-id', 'webhook-timestamp'],
  stripe: [],
  twilio: ['i-twilio-idempotency-token'],
}

/** Returns the headers of the deliveries of a hook, sorted. */
export function deliveryHeaders(
  verify: SignatureManifest | null,
  named: readonly string[],
): readonly string[] {
  const own = verify === null ? [] : SCHEME_HEADERS[verify.scheme]
  return [...new Set(['content-type', ...own, ...named])].sort()
}

/** Returns the name of the secret that the server reads; null for a scheme without one. */
export function secretOf(verify: SignatureManifest | null): string | null {
  return verify === null || verify.scheme === 'jwt' ? null : verify.secret
}

/**
 * The two requests to the identity provider: its metadata, for a property that the server does not
 * pass on, and the exchange of a code. Neither follows a redirect.
 */
import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  type CustomFetchOptions,
  customFetch,
  discoveryRequest,
  None,
  processAuthorizationCodeResponse,
  ResponseBodyError,
} from 'oauth4webapi'
import { Fault, isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { isJsonObject, type Json, type JsonObject } from '../../value/strict-json.ts'
import type { OidcConfig } from '../../wire/identity/oidc.ts'
import { DEADLINE_MS, jsonOf, type Network, readBounded, systemCode } from '../requests/requests.ts'
import { failed, printableCode } from './authorization-responses.ts'
import type { Authorization } from './authorizations.ts'
import { isExternalToken } from './tokens.ts'

const METADATA_BYTES_MAX = 256 * 1024
const METADATA_DEADLINE_MS = 5_000
const TOKEN_RESPONSE_BYTES_MAX = 64 * 1024
/** Members of responses that are read. Others, such as an ID token, are ignored. */
const MEMBERS = [
  'issuer',
  'authorization_response_iss_parameter_supported',
  'access_token',
  'token_type',
  'error',
]
/** HTTP statuses of responses without a body. */
const BODILESS = [204, 205, 304]

/**
 * Tells whether every authorization response of the provider carries `iss` (RFC 9207, section 3).
 * Returns false if the metadata cannot be read; the endpoints do not depend on it. Throws
 * CLIENT_BROWSER_LOGIN_FAILED if it belongs to another issuer.
 */
export async function promisesIssuer(network: Network, issuer: string): Promise<boolean> {
  const metadata = await readMetadata(network, issuer)
  if (metadata === null) return false
  // OpenID Connect Discovery, 4.3: the issuers must be identical texts.
  if (metadata.issuer !== issuer) throw failed('The metadata of the provider names another issuer.')
  return metadata.authorization_response_iss_parameter_supported === true
}

async function readMetadata(network: Network, issuer: string): Promise<JsonObject | null> {
  try {
    const response = await discoveryRequest(
      new URL(issuer),
      requestOptions(network, METADATA_BYTES_MAX, METADATA_DEADLINE_MS),
    )
    return response.status === 200 ? fieldsOf(await response.json()) : null
  } catch {
    return null
  }
}

export interface Exchange {
  readonly server: AuthorizationServer
  readonly client: Client
  /** The result of `validateResponse`. */
  readonly parameters: URLSearchParams
  readonly authorization: Authorization
}

/**
 * Exchanges the code, which is sent once, for an access token. Throws CLIENT_BROWSER_LOGIN_FAILED,
 * CLIENT_SERVER_UNREACHABLE, CLIENT_INTERRUPTED.
 */
export async function exchangeCode(
  network: Network,
  { resource }: Pick<OidcConfig, 'resource'>,
  exchange: Exchange,
): Promise<Secret> {
  const { server, client } = exchange
  const response = await sendCode(network, resource, exchange)
  const tokens = await processAuthorizationCodeResponse(server, client, response).catch((error) => {
    const code = error instanceof ResponseBodyError ? printableCode(error.error) : null
    throw response.status === 200
      ? failed('The provider returned no usable access token.')
      : failed(`The provider rejected the code: ${code ?? response.status}.`)
  })
  if (tokens.token_type !== 'bearer') throw failed('The provider returned no bearer token.')
  if (!isExternalToken(tokens.access_token)) {
    throw failed('The provider returned no usable access token.')
  }
  return new Secret(tokens.access_token)
}

async function sendCode(
  network: Network,
  resource: string | null,
  { server, client, parameters, authorization }: Exchange,
): Promise<Response> {
  try {
    return await authorizationCodeGrantRequest(
      server,
      client,
      // A public client has no secret; the verifier proves that it made the request.
      None(),
      parameters,
      authorization.redirectUri,
      authorization.verifier.reveal(),
      {
        ...requestOptions(network, TOKEN_RESPONSE_BYTES_MAX, DEADLINE_MS),
        additionalParameters: resource === null ? {} : { resource },
      },
    )
  } catch (error) {
    if (network.signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    if (isFault(error)) throw failed('The response of the provider is too long.')
    const { origin } = new URL(server.token_endpoint!)
    const detail = `${origin}: ${systemCode(error) ?? 'no response'}.`
    throw new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
  }
}

function requestOptions(network: Network, bytesMax: number, deadlineMs: number) {
  return {
    // requireSafeConfig has rejected unsafe addresses before.
    [allowInsecureRequests]: true,
    [customFetch]: (url: string, options: FetchOptions) =>
      boundedFetch(network, bytesMax, url, options),
    signal: AbortSignal.any([AbortSignal.timeout(deadlineMs), network.signal]),
  }
}

type FetchOptions = CustomFetchOptions<'GET' | 'POST', URLSearchParams | undefined>

/**
 * Sends a request of oauth4webapi and reads the whole response. Its new body has the members that
 * are used; it is null if the body is not strict JSON.
 */
async function boundedFetch(
  network: Network,
  bytesMax: number,
  url: string,
  { body, ...options }: FetchOptions,
): Promise<Response> {
  const response = await network.environment.fetch(url, {
    ...options,
    ...(body === undefined ? {} : { body: body.toString() }),
    // The code and the verifier are only sent to the configured address.
    redirect: 'manual',
    keepalive: false,
  })
  const { status } = response
  const fields = strictFields(response, await readBounded(response, bytesMax))
  if (BODILESS.includes(status)) return new Response(null, { status })
  const used = fields === null ? null : Object.entries(fields).filter(([k]) => MEMBERS.includes(k))
  return Response.json(used === null ? null : Object.fromEntries(used), { status })
}

function strictFields(response: Response, bytes: Uint8Array): JsonObject | null {
  try {
    return fieldsOf(jsonOf(response, bytes))
  } catch {
    return null
  }
}

function fieldsOf(json: Json): JsonObject | null {
  return isJsonObject(json) ? json : null
}

/**
 * The two requests to the identity provider itself: its metadata, for the one promise that the
 * server does not pass on, and the exchange of a code. Neither follows a redirect.
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
import type { OidcConfig } from '../../wire/oidc.ts'
import { DEADLINE_MS, jsonOf, type Network, readBounded, systemCode } from '../requests.ts'
import { failed, printableCode } from './answers.ts'
import type { Authorization } from './authorizations.ts'
import { isExternalToken } from './tokens.ts'

const METADATA_BYTES_MAX = 256 * 1024
const METADATA_DEADLINE_MS = 5_000
const TOKEN_ANSWER_BYTES_MAX = 64 * 1024
/** Members of answers that are read. Others, such as an ID token, are not validated either. */
const MEMBERS = [
  ...['issuer', 'authorization_response_iss_parameter_supported'],
  ...['access_token', 'token_type', 'error'],
]
/** Statuses with which a Response has no body. */
const BODILESS = [204, 205, 304]

/**
 * Whether the provider promises `iss` in every answer (RFC 9207, section 3). False where its
 * metadata cannot be had: the endpoints are fixed without them, so none but the promise is lost.
 * Faults: CLIENT_BROWSER_LOGIN_FAILED where they are of another issuer.
 */
export async function promisesIssuer(network: Network, issuer: string): Promise<boolean> {
  const metadata = await readMetadata(network, issuer)
  if (metadata === null) return false
  // OpenID Connect Discovery, 4.3: the very same text.
  if (metadata.issuer !== issuer) throw failed('The metadata of the provider name another issuer.')
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
  /** The answer with the code, as `validateAnswer` returned it. */
  readonly parameters: URLSearchParams
  readonly authorization: Authorization
}

/**
 * The access token for the code, which is sent once. Faults: CLIENT_BROWSER_LOGIN_FAILED,
 * CLIENT_SERVER_UNREACHABLE, CLIENT_INTERRUPTED.
 */
export async function exchangeCode(
  network: Network,
  { resource }: Pick<OidcConfig, 'resource'>,
  exchange: Exchange,
): Promise<Secret> {
  const { server, client } = exchange
  const response = await sendCode(network, resource, exchange)
  const answer = await processAuthorizationCodeResponse(server, client, response).catch((error) => {
    const code = error instanceof ResponseBodyError ? printableCode(error.error) : null
    throw response.status === 200
      ? failed('The provider answered no usable access token.')
      : failed(`The provider gave no token for the code: ${code ?? response.status}.`)
  })
  if (answer.token_type !== 'bearer') throw failed('The provider answered no bearer token.')
  if (!isExternalToken(answer.access_token)) {
    throw failed('The provider answered no usable access token.')
  }
  return new Secret(answer.access_token)
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
      // A public client names itself and proves itself by the verifier; it has no secret.
      None(),
      parameters,
      authorization.redirectUri,
      authorization.verifier.reveal(),
      {
        ...requestOptions(network, TOKEN_ANSWER_BYTES_MAX, DEADLINE_MS),
        additionalParameters: resource === null ? {} : { resource },
      },
    )
  } catch (error) {
    if (network.signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    if (isFault(error)) throw failed('The answer of the provider is too long.')
    const { origin } = new URL(server.token_endpoint!)
    const detail = `${origin}: ${systemCode(error) ?? 'no answer'}.`
    throw new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
  }
}

function requestOptions(network: Network, bytesMax: number, deadlineMs: number) {
  return {
    // requireSafeConfig has decided which addresses may have plain HTTP.
    [allowInsecureRequests]: true,
    [customFetch]: (url: string, options: FetchOptions) =>
      boundedFetch(network, bytesMax, url, options),
    signal: AbortSignal.any([AbortSignal.timeout(deadlineMs), network.signal]),
  }
}

type FetchOptions = CustomFetchOptions<'GET' | 'POST', URLSearchParams | undefined>

/**
 * Sends a request of oauth4webapi and returns an answer of which all has been read: the members
 * that are used if the body is strict JSON, and null otherwise.
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
    // The code and the verifier go to the configured address and nowhere else.
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

/**
 * The two questions to the identity provider itself: its metadata, for the one promise that the
 * server does not pass on, and the exchange of a code. Neither follows a redirect.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { isJsonObject, type Json, type JsonObject } from '../../value/strict-json.ts'
import type { OidcConfig } from '../../wire/oidc.ts'
import { DEADLINE_MS, jsonOf, type Network, readBounded, systemCode } from '../requests.ts'
import { ERROR_CODE, failed } from './answers.ts'
import type { Authorization } from './authorizations.ts'

const METADATA_BYTES_MAX = 256 * 1024
const METADATA_DEADLINE_MS = 5_000
const TOKEN_ANSWER_BYTES_MAX = 64 * 1024
/** The Authorization header has at most 16 KiB (Document 1, Limits). */
const TOKEN_LENGTH_MAX = 16_000
/** RFC 6750, section 2.1. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

export function isExternalToken(text: string): boolean {
  return text.length <= TOKEN_LENGTH_MAX && TOKEN.test(text)
}

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
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  try {
    const { response, bytes } = await ask(network, url, {
      bytesMax: METADATA_BYTES_MAX,
      deadlineMs: METADATA_DEADLINE_MS,
    })
    return response.status === 200 ? objectOf(jsonOf(response, bytes)) : null
  } catch {
    return null
  }
}

/**
 * The access token for the code, which is sent once. Faults: CLIENT_BROWSER_LOGIN_FAILED,
 * CLIENT_SERVER_UNREACHABLE, CLIENT_INTERRUPTED.
 */
export async function exchangeCode(
  network: Network,
  config: OidcConfig,
  { code, authorization }: { readonly code: Secret; readonly authorization: Authorization },
): Promise<Secret> {
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: code.reveal(),
    redirect_uri: authorization.redirectUri,
    // A public client names itself and proves itself by the verifier; it has no secret.
    client_id: config.clientId,
    code_verifier: authorization.verifier.reveal(),
    ...(config.resource === null ? {} : { resource: config.resource }),
  })
  const { response, bytes } = await askForToken(network, config.tokenEndpoint, form)
  const fields = tokenFields(response, bytes)
  if (response.status !== 200) {
    const { error } = fields ?? {}
    const reason = typeof error === 'string' && ERROR_CODE.test(error) ? error : response.status
    throw failed(`The provider gave no token for the code: ${reason}.`)
  }
  const { access_token: token, token_type: type } = fields ?? {}
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
    throw failed('The provider answered no bearer token.')
  }
  if (typeof token !== 'string' || !isExternalToken(token)) {
    throw failed('The provider answered no usable access token.')
  }
  return new Secret(token)
}

async function askForToken(network: Network, endpoint: string, form: URLSearchParams) {
  try {
    return await ask(network, endpoint, {
      form,
      bytesMax: TOKEN_ANSWER_BYTES_MAX,
      deadlineMs: DEADLINE_MS,
    })
  } catch (error) {
    if (network.signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    if (isFault(error)) throw failed('The answer of the provider is too long.')
    const detail = `${new URL(endpoint).origin}: ${systemCode(error) ?? 'no answer'}.`
    throw new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
  }
}

function tokenFields(response: Response, bytes: Uint8Array): JsonObject | null {
  try {
    return objectOf(jsonOf(response, bytes))
  } catch {
    return null
  }
}

interface Question {
  /** POST where there is one. */
  readonly form?: URLSearchParams
  readonly bytesMax: number
  readonly deadlineMs: number
}

async function ask(network: Network, url: string, { form, bytesMax, deadlineMs }: Question) {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (form !== undefined) headers['content-type'] = 'application/x-www-form-urlencoded'
  const response = await network.environment.fetch(url, {
    method: form === undefined ? 'GET' : 'POST',
    headers,
    ...(form === undefined ? {} : { body: form.toString() }),
    // The code and the verifier go to the configured address and nowhere else.
    redirect: 'manual',
    keepalive: false,
    signal: AbortSignal.any([AbortSignal.timeout(deadlineMs), network.signal]),
  })
  return { response, bytes: await readBounded(response, bytesMax) }
}

function objectOf(json: Json): JsonObject | null {
  return isJsonObject(json) ? json : null
}

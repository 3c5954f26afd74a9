/**
 * A certified OpenID Provider, `oidc-provider`, on a loopback port. Its pages approve by
 * themselves, so that a client that follows redirects and keeps cookies is logged in; optionally
 * they are forms with one button each.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { assert } from '../../src/errors/assert.ts'
import type { OidcProvider } from '../../src/identity/oidc/provider.ts'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import { Secret } from '../../src/value/secret.ts'
import type { OidcConfig } from '../../src/wire/identity/oidc.ts'
import { httpBrowser } from '../browsers/browser.ts'

export const RESOURCE = 'https://manage.example.com/'
const ISSUER = 'https://op.test'
const CLIENT = 'svc-cli'

export interface OpenIdProvider {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string
  /** The settings of a svc-server that uses this provider. */
  readonly settings: OidcProvider
  /** Replaces the key that is published and signs. */
  rotate(): Promise<void>
  close(): Promise<void>
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** The part of the library's API that is used here; the library has no types. */
interface Library {
  callback(): Handler
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ readonly prompt: { readonly name: string } }>
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: object,
  ): Promise<void>
  readonly Grant: new (
    about: object,
  ) => {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }
}

const SUBJECT = 'person-1'

/** `tokenSeconds` is the lifetime of access tokens. With `forms` pages wait for a submission. */
export async function openIdProvider({
  tokenSeconds = 600,
  forms = false,
} = {}): Promise<OpenIdProvider> {
  let serial = 0
  const open = async () => openLibrary(`op-key-${++serial}`, tokenSeconds)
  let library = await open()
  let handle = library.callback()
  const server = createServer((request, response) => {
    if (!request.url?.startsWith('/interaction/')) return handle(request, response)
    const interact = forms && request.method === 'GET' ? show : approve
    interact(library, request, response).catch(() => response.writeHead(500).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    settings: settingsFor(origin),
    rotate: async () => {
      library = await open()
      handle = library.callback()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function settingsFor(origin: string): OidcProvider {
  return {
    providerId: 'op',
    issuer: ISSUER,
    discoveryUrl: `${origin}/.well-known/openid-configuration`,
    audience: RESOURCE,
    allowedOrigins: [origin],
    discriminatorClaim: 'token_use',
    discriminatorValue: 'operator',
    algorithm: 'ES256',
    requiredType: 'at+jwt',
    subjectPepper: new Secret(encodeBase64Url(new Uint8Array(32).fill(9))),
    nativeClient: {
      authorizationEndpoint: `${origin}/auth`,
      tokenEndpoint: `${origin}/token`,
      clientId: CLIENT,
      scopes: ['openid', 'manage'],
      resource: RESOURCE,
    },
    allowLoopbackHttp: true,
    isWorkload: false,
    requiredClaims: {},
  }
}

async function openLibrary(kid: string, tokenSeconds: number): Promise<Library> {
  // The name is a variable because the compiler cannot find types for the package.
  const name: string = 'oidc-provider'
  const { default: Provider } = (await import(name)) as {
    default: new (issuer: string, configuration: object) => Library
  }
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const key = { ...(await exportJWK(privateKey)), kid, use: 'sig', alg: 'ES256' }
  return new Provider(ISSUER, {
    jwks: { keys: [key] },
    cookies: { keys: ['cookie-key-of-the-test-provider'] },
    clients: [
      {
        client_id: CLIENT,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        id_token_signed_response_alg: 'ES256',
        redirect_uris: ['http://127.0.0.1/callback'],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    scopes: ['openid'],
    pkce: { required: () => true },
    findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    extraTokenClaims: () => ({ token_use: 'operator' }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    ttl: { AccessToken: tokenSeconds, Grant: 3600, Interaction: 600, Session: 3600, IdToken: 600 },
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'manage',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: tokenSeconds,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
}

async function approve(
  library: Library,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt } = await library.interactionDetails(request, response)
  if (prompt.name === 'login') {
    return library.interactionFinished(request, response, { login: { accountId: SUBJECT } })
  }
  const grant = new library.Grant({ accountId: SUBJECT, clientId: CLIENT })
  grant.addOIDCScope('openid')
  grant.addResourceScope(RESOURCE, 'manage')
  return library.interactionFinished(request, response, {
    consent: { grantId: await grant.save() },
  })
}

async function show(
  library: Library,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt } = await library.interactionDetails(request, response)
  const html = [
    `<!doctype html><html lang="en"><head><title>${prompt.name}</title></head>`,
    '<body><form method="post"><button>Continue</button></form></body></html>',
  ]
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html.join(''))
}

export interface Tokens {
  readonly access_token: string
  readonly id_token: string
}

const REDIRECT = 'http://127.0.0.1:49152/callback'

/** Runs the code flow with PKCE as a browser and the command line do. */
export async function authorize(config: OidcConfig): Promise<Tokens> {
  const verifier = encodeBase64Url(crypto.getRandomValues(new Uint8Array(48)))
  const url = new URL(config.authorizationEndpoint)
  const common = {
    client_id: config.clientId,
    redirect_uri: REDIRECT,
    resource: config.resource ?? '',
  }
  for (const [name, value] of Object.entries({
    ...common,
    response_type: 'code',
    scope: config.scopes.join(' '),
    state: 'state-1',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })) {
    url.searchParams.set(name, value)
  }
  const last = await httpBrowser({ end: REDIRECT }).visit(url.href)
  const callback = new URL(last.url).searchParams
  assert(callback.get('state') === 'state-1', 'the state was not returned')
  assert(callback.get('iss') === config.issuer, 'the response does not name the issuer')
  const code = callback.get('code') ?? ''
  const form = { ...common, grant_type: 'authorization_code', code, code_verifier: verifier }
  const response = await fetch(config.tokenEndpoint, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  assert(response.status === 200, 'the code was not accepted')
  return (await response.json()) as Tokens
}

/**
 * An identity provider whose responses tests control: it can rotate keys, send wrong data, stall
 * and redirect. Its names exist only in the `network` that it gives to the guarded fetch.
 */
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK } from 'jose'
import type { OidcProvider } from '../../src/identity/oidc/provider.ts'
import type { Network } from '../../src/system/guarded-fetch.ts'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import type { SignatureAlgorithm } from '../../src/value/jwt-providers.ts'
import { Secret } from '../../src/value/secret.ts'
import { selfSigned } from '../certificates.ts'

export const SUBJECT_PEPPER = new Secret(encodeBase64Url(new Uint8Array(32).fill(9)))
export const PROVIDER: OidcProvider = {
  providerId: 'test-idp',
  issuer: 'https://idp.test/tenant',
  discoveryUrl: 'https://idp.test/tenant/.well-known/openid-configuration',
  audience: 'https://manage.example.com',
  allowedOrigins: ['https://idp.test', 'https://keys.idp.test'],
  discriminatorClaim: 'token_use',
  discriminatorValue: 'operator',
  algorithm: 'ES256',
  requiredType: 'JWT',
  subjectPepper: SUBJECT_PEPPER,
  nativeClient: null,
  allowLoopbackHttp: false,
  isWorkload: false,
  requiredClaims: {},
}

/** A provider of people as its configuration file has it. */
export function providerFile(provider: OidcProvider): object {
  const { isWorkload: _, requiredClaims: _claims, nativeClient, requiredType, ...fields } = provider
  return {
    ...fields,
    subjectPepper: provider.subjectPepper.reveal(),
    ...(requiredType !== null && { requiredType }),
    ...(nativeClient !== null && { nativeClient }),
  }
}

/** The address that the reserved names resolve to by default. */
const PUBLIC_ADDRESS = '93.184.216.34'

export interface SigningKey {
  readonly privateKey: CryptoKey
  /** The public key, as published. */
  readonly jwk: JWK
}

export interface TestProvider {
  readonly network: Network
  /** Addresses of a name that differ from the default. */
  readonly addresses: Map<string, readonly string[]>
  /** Addresses of the connections. */
  readonly dialled: string[]
  /** Paths of the requests, oldest first. */
  readonly requests: string[]
  /** Published keys. Replace the contents to rotate them. */
  jwks: { keys: unknown[] }
  discovery: Record<string, unknown>
  /** Handles a request in place of the provider if it returns true. */
  intercept: ((path: string, response: ServerResponse) => boolean) | null
  /** The key that `sign` uses. */
  key: SigningKey
  claims(nowMillis: number, given?: Record<string, unknown>): Record<string, unknown>
  sign(claims: object | string, header?: Record<string, unknown>): Promise<string>
  close(): Promise<void>
}

export async function makeKey(
  kid: string | undefined,
  algorithm: SignatureAlgorithm = 'ES256',
): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }), use: 'sig' }
  return { privateKey, jwk: { ...jwk, alg: algorithm } }
}

const tls = selfSigned('idp.test', 'keys.idp.test')

export async function testProvider(): Promise<TestProvider> {
  const key = await makeKey('key-1')
  const listener: RequestListener = (request, response) => {
    const path = request.url ?? ''
    provider.requests.push(path)
    if (provider.intercept?.(path, response) === true) return
    const body = path.endsWith('/jwks') ? provider.jwks : provider.discovery
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  const server = createServer({ key: tls.key, cert: tls.certificate }, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const provider: TestProvider = {
    network: {
      resolve: async (hostname) =>
        (provider.addresses.get(hostname) ?? [PUBLIC_ADDRESS]).map((address) => ({ address })),
      dial: (address) => {
        provider.dialled.push(address)
        return { host: '127.0.0.1', port, authority: tls.certificate }
      },
    },
    addresses: new Map(),
    dialled: [],
    requests: [],
    jwks: { keys: [key.jwk] },
    discovery: { issuer: PROVIDER.issuer, jwks_uri: 'https://keys.idp.test/jwks' },
    intercept: null,
    key,
    claims: (nowMillis, given = {}) => {
      const iat = Math.floor(nowMillis / 1000)
      return {
        iss: PROVIDER.issuer,
        aud: PROVIDER.audience,
        sub: 'subject-1',
        iat,
        exp: iat + 600,
        [PROVIDER.discriminatorClaim]: PROVIDER.discriminatorValue,
        ...given,
      }
    },
    sign: (claims, header = {}) => {
      const text = typeof claims === 'string' ? claims : JSON.stringify(claims)
      const base = { alg: 'ES256', typ: 'JWT', kid: provider.key.jwk.kid }
      const full = Object.entries({ ...base, ...header }).filter(([, each]) => each !== undefined)
      return new CompactSign(new TextEncoder().encode(text))
        .setProtectedHeader(Object.fromEntries(full) as { alg: string })
        .sign(provider.key.privateKey)
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return provider
}

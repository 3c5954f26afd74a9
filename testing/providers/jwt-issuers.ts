/** Issuers of JWTs whose keys are published on a loopback address. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import type { JwtProvider, SignatureAlgorithm } from '../../src/value/jwt-providers.ts'
import { makeKey, type SigningKey } from './identity-providers.ts'

export interface JwtIssuer {
  readonly jwksUri: string
  /** Published keys. Replace the contents to rotate them. */
  jwks: { keys: unknown[] }
  /** The key that `sign` uses. */
  key: SigningKey
  /** Number of requests for the keys. */
  requests: number
  /** Responds in place of the keys if it is set. A response that it does not end hangs. */
  intercept: ((response: ServerResponse) => void) | null
  claims(nowMillis: number, given?: Record<string, unknown>): Record<string, unknown>
  sign(claims: object | string, header?: object | string): Promise<string>
  close(): Promise<void>
}

export const ISSUER = 'https://users.test/tenant'
export const AUDIENCE = 'https://api.test'

export async function jwtIssuer(
  algorithm: SignatureAlgorithm = 'ES256',
  given: Record<string, unknown> = {},
): Promise<JwtIssuer> {
  const key = await makeKey('key-1', algorithm)
  const server = createServer((_, response) => {
    issuer.requests += 1
    if (issuer.intercept !== null) return issuer.intercept(response)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(issuer.jwks))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer: JwtIssuer = {
    jwksUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    jwks: { keys: [key.jwk] },
    key,
    requests: 0,
    intercept: null,
    claims: (nowMillis, more = {}) => {
      const iat = Math.floor(nowMillis / 1000)
      const base = { iss: ISSUER, aud: AUDIENCE, sub: 'subject-1', iat, exp: iat + 600 }
      return { ...base, ...given, ...more }
    },
    sign: async (claims, header = {}) => {
      const head = { alg: algorithm, typ: 'JWT', kid: issuer.key.jwk.kid }
      const parts = [typeof header === 'string' ? header : { ...head, ...header }, claims]
      const input = parts.map(encodePart).join('.')
      return `${input}.${await signature(issuer.key, input)}`
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return issuer
}

/** Writes the file that names an issuer of ES256 for users, without a tolerance for clocks. */
export function writeAuthFile(path: string, { jwksUri }: JwtIssuer): void {
  const provider = { name: 'users', kind: 'user', issuer: ISSUER, audience: AUDIENCE }
  const keys = { algorithms: ['ES256'], jwksUri, clockToleranceSeconds: 0 }
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ version: 1, providers: [{ ...provider, ...keys }] }))
}

export function encodePart(part: object | string): string {
  const text = typeof part === 'string' ? part : JSON.stringify(part)
  return encodeBase64Url(new TextEncoder().encode(text))
}

/** Signs with the algorithm of the key, even if the header names another one. */
export async function signature({ privateKey }: SigningKey, input: string): Promise<string> {
  const { name } = privateKey.algorithm
  const algorithm = { name, hash: 'SHA-256', saltLength: 32 }
  const bytes = await crypto.subtle.sign(algorithm, privateKey, new TextEncoder().encode(input))
  return encodeBase64Url(new Uint8Array(bytes))
}

/** Creates a provider as the descriptor would give it. */
export function jwtProvider(given: Partial<JwtProvider> & Pick<JwtProvider, 'keys'>): JwtProvider {
  return {
    name: 'users',
    kind: 'user',
    issuer: ISSUER,
    audience: AUDIENCE,
    algorithms: ['ES256'],
    requiredType: null,
    claims: { subject: ['sub'], roles: ['roles'], email: ['email'] },
    clockToleranceSeconds: 60,
    maximumLifetimeSeconds: 3_600,
    ...given,
  }
}

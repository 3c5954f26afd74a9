/** The keys of the external identity provider, located by discovery. */
import type { Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { readObject } from '../jwt/key-sets.ts'
import { PublishedKeys } from '../jwt/published-keys.ts'
import type { OidcProvider } from './provider.ts'

const JSON_LIMITS = { depthMax: 16, entriesMax: 1_000 }

export interface ProviderKeysOptions {
  readonly provider: OidcProvider
  readonly system: System
  readonly log: Logger
  /** The network of the fetches. Tests replace it. */
  readonly network?: Network
}

export function providerKeys({ provider, ...options }: ProviderKeysOptions): PublishedKeys {
  const { providerId, algorithm, allowedOrigins, allowLoopbackHttp, discoveryUrl } = provider
  return new PublishedKeys({
    ...options,
    publisher: providerId,
    algorithms: [algorithm],
    allowedOrigins,
    allowLoopbackHttp,
    locate: async (read) => readDiscovery(await read(discoveryUrl), provider),
    unavailable: 'PLATFORM_UNAVAILABLE',
    store: null,
  })
}

/** Returns `jwks_uri`. The issuer is compared exactly (OpenID Connect Discovery 1.0, 4.3). */
function readDiscovery(document: Uint8Array, { issuer }: { readonly issuer: string }): string {
  const metadata = readObject(parseStrictJson(document, JSON_LIMITS))
  if (metadata.issuer !== issuer) throw new ValidationError('the configured issuer', '$.issuer')
  if (typeof metadata.jwks_uri !== 'string') throw new ValidationError('a URL', '$.jwks_uri')
  return metadata.jwks_uri
}

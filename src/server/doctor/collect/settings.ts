/** Readings of the settings and of what they agree with. */
import { existsSync } from 'node:fs'
import { readFixedKeys } from '../../../product/functional-tokens/providers.ts'
import { parseUrl } from '../../../settings/addresses.ts'
import type { ServerSettings } from '../../../settings/settings.ts'
import { unreadNames } from '../../../settings/sources.ts'
import { checkBlobs } from '../../blobs.ts'
import { checkDocuments } from '../../documents.ts'
import type { ProcessEnvironment } from '../../io.ts'
import type { CertificateReading, SettingsReading } from '../readings.ts'
import { reasonOf } from './reading-of.ts'

const ORIGINS_MAX = 16
const LOOPBACK = /^https?:\/\/(?:localhost|127\.[0-9.]+|\[::1\])(?::|$)/

export async function readSettings(
  settings: ServerSettings,
  environment: ProcessEnvironment,
): Promise<SettingsReading> {
  const { product, management, deprecatedNames, exposedNames } = settings
  const origins = product?.allowedOrigins ?? []
  return {
    unread: unreadNames(environment),
    deprecated: deprecatedNames,
    exposed: exposedNames,
    storeDefect: await defectOf(() => {
      if (product === null || !existsSync(product.root)) return
      checkDocuments({ rootPath: product.root, database: product.database })
      checkBlobs({ rootPath: product.root, storage: product.storage })
    }),
    jwtDefect: await defectOf(async () => {
      for (const provider of product?.jwtProviders ?? []) await readFixedKeys(provider)
    }),
    publicUrl: management.publicUrl,
    tlsTerminated: management.tlsTerminated,
    endsTls: management.endsTls,
    plainOrigins: origins.filter((origin) => origin.startsWith('http:') && !LOOPBACK.test(origin)),
  }
}

async function defectOf(look: () => Promise<void> | void): Promise<string | null> {
  try {
    await look()
    return null
  } catch (error) {
    return reasonOf(error)
  }
}

/** Lists the configured HTTPS origins, each with its setting. */
export function configuredOrigins(
  settings: ServerSettings,
): readonly Pick<CertificateReading, 'setting' | 'origin'>[] {
  const { management, product, oidc, workloads, traces } = settings
  const providers = [...(oidc === null ? [] : [oidc]), ...workloads]
  const found: [setting: string, url: string | null | undefined][] = [
    ['SERVICE_PUBLIC_MANAGEMENT_URL', management.publicUrl],
    ['SERVICE_S3_HOST', product?.s3Host == null ? null : `https://${product.s3Host}`],
    ...providers.map(({ issuer }) => ['SERVICE_OIDC_CONFIG_FILE', issuer] as [string, string]),
    ...(product?.jwtProviders ?? []).map(
      ({ keys }) =>
        ['SERVICE_PRODUCT_AUTH_CONFIG', 'uri' in keys ? keys.uri : null] as [string, string | null],
    ),
    ['SERVICE_STORAGE_S3_ENDPOINT', product?.storage.s3?.endpoint],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', traces?.url],
  ]
  const origins = new Map<string, Pick<CertificateReading, 'setting' | 'origin'>>()
  for (const [setting, url] of found) {
    const parsed = url == null ? null : parseUrl(url)
    if (parsed?.protocol !== 'https:') continue
    origins.set(`${setting} ${parsed.origin}`, { setting, origin: parsed.origin })
  }
  return [...origins.values()].slice(0, ORIGINS_MAX)
}

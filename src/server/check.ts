/**
 * `svc-server check`: prints the settings that `serve` would use, or the error that `serve` would
 * fail with because of its settings and files. Opens no connection and no database, and changes
 * nothing.
 */

import { checkStateDirectory } from '../identity/bootstrap-files.ts'
import { readFixedKeys } from '../product/functional-tokens/providers.ts'
import { type DatabaseAddress, formatListener } from '../settings/addresses.ts'
import { type ProductSettings, parseSettings, type ServerSettings } from '../settings/settings.ts'
import { unreadNames } from '../settings/sources.ts'
import type { CertificatePair, TlsSettings } from '../settings/tls.ts'
import { checkProductRoot } from '../storage/root.ts'
import type { RootDescriptor } from '../value/product-root.ts'
import { checkBlobs } from './blobs.ts'
import { checkDocuments } from './documents.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'check')
  checkStateDirectory(configuration.stateDirectory)
  const { product } = configuration
  const rootDescriptor = product === null ? null : await checkProduct(product)
  const rows = describe(configuration, rootDescriptor)
  const width = Math.max(...rows.map(([label]) => label.length)) + 2
  io.out('The configuration is valid. `svc-server serve` would use:\n\n')
  for (const [label, value] of rows) io.out(`  ${label.padEnd(width)}${value}\n`)
  const found = notes(configuration, environment)
  if (found.length > 0) io.out(`\n${found.join('\n')}\n`)
  return 0
}

/** Checks in the order of `serve`, so that both report the same one of several failures. */
async function checkProduct({
  root,
  database,
  jwtProviders,
  storage,
}: ProductSettings): Promise<RootDescriptor> {
  const descriptor = checkProductRoot(root)
  for (const provider of jwtProviders) await readFixedKeys(provider)
  checkDocuments({ rootPath: root, database })
  checkBlobs({ rootPath: root, storage })
  return descriptor
}

function describe(
  configuration: ServerSettings,
  rootDescriptor: RootDescriptor | null,
): [string, string][] {
  const { management, product, tls } = configuration
  return [
    ['Management listener', listener(management.listen, management.tlsTerminated, tls)],
    ...(tls === null ? [] : [['Certificate', certificate(tls)] as [string, string]]),
    ['Public Management URL', management.publicUrl ?? 'none'],
    ['Identity database', database(configuration.identityDatabase)],
    ['Identity pepper', String(configuration.identityPepper)],
    ['State directory', configuration.stateDirectory],
    ['Identity provider', configuration.oidc?.issuer ?? 'none'],
    ['Workload providers', workloads(configuration)],
    ['Managed source', configuration.managedSource?.authority ?? 'none'],
    ['Kept', retention(configuration)],
    ['Product root', product?.root ?? 'none: identity only'],
    ...(rootDescriptor === null ? [] : describeEnvironment(rootDescriptor)),
    ...(product === null ? [] : describeProduct(product, tls)),
    ['Function sandbox', sandbox(configuration.sandbox)],
    ['Traces', traces(configuration)],
  ]
}

function retention({ retention: { auditDays, sessionDays } }: ServerSettings): string {
  const days = (count: number) => (count === 1 ? '1 day' : `${count} days`)
  return `audit records for ${days(auditDays)}, ended sessions for ${days(sessionDays)}`
}

function traces({ traces }: ServerSettings): string {
  if (traces === null) return 'none'
  return `${traces.ratio * 100}% to ${new URL(traces.url).origin} (${traces.protocol})`
}

function workloads({ workloads }: ServerSettings): string {
  if (workloads.length === 0) return 'none'
  return workloads.map(({ providerId, issuer }) => `${providerId} (${issuer})`).join(', ')
}

function describeEnvironment({
  name,
  projectId,
  environmentId,
}: RootDescriptor): [string, string][] {
  return [['Environment', `${name} (${environmentId} of ${projectId})`]]
}

function describeProduct(product: ProductSettings, tls: TlsSettings | null): [string, string][] {
  const { applicationListen, allowedOrigins, actionNetworks, jwtProviders } = product
  const providers = jwtProviders.map(({ name, kind, issuer }) => `${name} (${kind}, ${issuer})`)
  const documents = product.database === null ? 'in the Product root' : database(product.database)
  return [
    [
      'Application listener',
      applicationListen === null
        ? 'none'
        : listener(applicationListen, product.applicationTlsTerminated, tls),
    ],
    ['Documents', documents],
    ['Files', files(product.storage)],
    ['S3 clients', s3Clients(product)],
    ['Allowed origins', allowedOrigins.length === 0 ? 'none' : allowedOrigins.join(', ')],
    ['JWT providers', providers.length === 0 ? 'none: guests only' : providers.join(', ')],
    ['Networks of Actions', ['public', ...actionNetworks.map(({ text }) => text)].join(', ')],
  ]
}

function listener(
  address: Parameters<typeof formatListener>[0],
  tlsTerminated: boolean,
  tls: TlsSettings | null,
): string {
  const ownBoundary = tls === null ? 'loopback, plain' : 'TLS'
  const boundary = tlsTerminated ? 'TLS ends at a proxy before it' : ownBoundary
  return `${formatListener(address)} (${boundary})`
}

function certificate({ pair, acme }: TlsSettings): string {
  const found = pair === null ? 'none yet' : validity(pair)
  if (acme === null) return found
  const { domains, directoryUrl, httpListen } = acme
  const challenges = formatListener(httpListen)
  return `${found}; ordered for ${domains.join(', ')} at ${directoryUrl} through ${challenges}`
}

function validity({ names, endsAtMillis }: CertificatePair): string {
  return `${names}, until ${new Date(endsAtMillis).toISOString()}`
}

function s3Clients({ applicationListen, s3Host }: ProductSettings): string {
  if (applicationListen === null) return 'none'
  return s3Host === null ? 'at /v1/s3' : `at / of the host ${s3Host}, and at /v1/s3`
}

function database({ host, port, name }: DatabaseAddress): string {
  return `${name} at ${formatListener({ host, port })}`
}

function files({ s3 }: ProductSettings['storage']): string {
  return s3 === null ? 'in the Product root' : `bucket ${s3.bucket} at ${s3.endpoint}`
}

function sandbox(sandbox: ServerSettings['sandbox']): string {
  return sandbox === 'required'
    ? 'required: refuses to start where Functions cannot be contained'
    : 'preferred: warns where Functions cannot be contained'
}

function notes(configuration: ServerSettings, environment: ProcessEnvironment): string[] {
  const deprecated = configuration.deprecatedNames.map((name) => `Deprecated name in use: ${name}`)
  const exposed = configuration.exposedNames.map(
    (name) => `Readable by every user: the file of ${name}`,
  )
  const unread = unreadNames(environment).map((name) => `Not a setting of this server: ${name}`)
  return [
    ...deprecated,
    ...exposed,
    ...unread,
    ...proxyNotes(configuration),
    ...unused(configuration),
  ]
}

/** Notes a certificate that no listener uses, since a proxy ends TLS before all of them. */
function unused({ tls, management, product }: ServerSettings): string[] {
  if (tls === null || management.endsTls || product?.applicationEndsTls === true) return []
  const name = tls.acme === null ? 'SERVICE_TLS_CERTIFICATE_FILE' : 'SERVICE_TLS_ACME_DOMAIN'
  return [`No listener uses ${name}: all of them have TLS_TERMINATED set`]
}

/** Notes a missing setting: without a certificate of the server, an HTTPS address needs a proxy. */
function proxyNotes({ management: { publicUrl, tlsTerminated }, tls }: ServerSettings): string[] {
  if (tls !== null || tlsTerminated || publicUrl?.startsWith('https:') !== true) return []
  return [
    'SERVICE_PUBLIC_MANAGEMENT_URL is HTTPS, so a proxy ends TLS: set ' +
      'SERVICE_MANAGEMENT_TLS_TERMINATED=true, or all operators share one rate limit',
  ]
}

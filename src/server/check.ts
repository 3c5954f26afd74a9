/**
 * `svc-server check`: says what `serve` would use, and what `serve` would say of the settings and
 * of the files that it reads. It connects to nothing, opens no database and changes nothing.
 */
import { type DatabaseAddress, formatListener } from '../config/addresses.ts'
import {
  type ProductConfiguration,
  parseConfiguration,
  type ServerConfiguration,
} from '../config/configuration.ts'
import { unreadNames } from '../config/variables.ts'
import { checkStateDirectory } from '../identity/bootstrap-files.ts'
import { readFixedKeys } from '../product/functional-tokens/providers.ts'
import { checkProductRoot } from '../storage/root.ts'
import type { RootDescriptor } from '../value/product-root.ts'
import { checkDocuments } from './documents.ts'
import type { Environment, ServerIo } from './io.ts'

export async function run(environment: Environment, io: ServerIo): Promise<number> {
  const configuration = parseConfiguration(environment, 'check')
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

/** Checks in the order of `serve`, so that of several failures both name the same one. */
async function checkProduct({
  root,
  database,
  jwtProviders,
}: ProductConfiguration): Promise<RootDescriptor> {
  const descriptor = checkProductRoot(root)
  for (const provider of jwtProviders) await readFixedKeys(provider)
  checkDocuments({ rootPath: root, database })
  return descriptor
}

function describe(
  configuration: ServerConfiguration,
  rootDescriptor: RootDescriptor | null,
): [string, string][] {
  const { management, product } = configuration
  return [
    ['Management listener', listener(management.listen, management.tlsTerminated)],
    ['Public Management URL', management.publicUrl ?? 'none'],
    ['Identity database', database(configuration.identityDatabase)],
    ['Identity pepper', String(configuration.identityPepper)],
    ['State directory', configuration.stateDirectory],
    ['Identity provider', configuration.oidc?.issuer ?? 'none'],
    ['Managed source', configuration.managedSource?.authority ?? 'none'],
    ['Product root', product?.root ?? 'none: identity only'],
    ...(rootDescriptor === null ? [] : describeEnvironment(rootDescriptor)),
    ...(product === null ? [] : describeProduct(product)),
    ['Function sandbox', sandbox(configuration.sandbox)],
  ]
}

function describeEnvironment({
  name,
  projectId,
  environmentId,
}: RootDescriptor): [string, string][] {
  return [['Environment', `${name} (${environmentId} of ${projectId})`]]
}

function describeProduct(product: ProductConfiguration): [string, string][] {
  const { applicationListen, allowedOrigins, actionNetworks, jwtProviders } = product
  const providers = jwtProviders.map(({ name, kind, issuer }) => `${name} (${kind}, ${issuer})`)
  const documents = product.database === null ? 'in the Product root' : database(product.database)
  return [
    [
      'Application listener',
      applicationListen === null ? 'none' : listener(applicationListen, true),
    ],
    ['Documents', documents],
    ['Allowed origins', allowedOrigins.length === 0 ? 'none' : allowedOrigins.join(', ')],
    ['JWT providers', providers.length === 0 ? 'none: guests only' : providers.join(', ')],
    ['Networks of Actions', ['public', ...actionNetworks.map(({ text }) => text)].join(', ')],
  ]
}

function listener(address: Parameters<typeof formatListener>[0], tlsTerminated: boolean): string {
  const boundary = tlsTerminated ? 'TLS ends at a proxy before it' : 'loopback, plain'
  return `${formatListener(address)} (${boundary})`
}

function database({ host, port, name }: DatabaseAddress): string {
  return `${name} at ${formatListener({ host, port })}`
}

function sandbox(sandbox: ServerConfiguration['sandbox']): string {
  return sandbox === 'required'
    ? 'required: refuses to start where Functions cannot be contained'
    : 'preferred: warns where Functions cannot be contained'
}

function notes(configuration: ServerConfiguration, environment: Environment): string[] {
  const deprecated = configuration.deprecatedNames.map((name) => `Deprecated name in use: ${name}`)
  const unread = unreadNames(environment).map((name) => `Not a setting of this server: ${name}`)
  return [...deprecated, ...unread]
}

/** `svc-server check`: says what `serve` would use. It connects to nothing and changes nothing. */
import { type DatabaseAddress, formatListener } from '../config/addresses.ts'
import { parseConfiguration, type ServerConfiguration } from '../config/configuration.ts'
import { unreadNames } from '../config/variables.ts'
import { readFixedKeys } from '../product/functional-tokens/providers.ts'
import type { Environment, ServerIo } from './io.ts'

export async function run(environment: Environment, io: ServerIo): Promise<number> {
  const configuration = parseConfiguration(environment, 'check')
  for (const provider of configuration.product?.jwtProviders ?? []) await readFixedKeys(provider)
  const rows = describe(configuration)
  const width = Math.max(...rows.map(([label]) => label.length)) + 2
  io.out('The configuration is valid. `svc-server serve` would use:\n\n')
  for (const [label, value] of rows) io.out(`  ${label.padEnd(width)}${value}\n`)
  const found = notes(configuration, environment)
  if (found.length > 0) io.out(`\n${found.join('\n')}\n`)
  return 0
}

function describe(configuration: ServerConfiguration): [string, string][] {
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
    ...(product === null ? [] : describeProduct(product)),
    ['Function sandbox', sandbox(configuration.sandbox)],
  ]
}

function describeProduct(product: NonNullable<ServerConfiguration['product']>): [string, string][] {
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
  const exposed = configuration.exposedNames.map(
    (name) => `Readable by every user: the file of ${name}`,
  )
  const unread = unreadNames(environment).map((name) => `Not a setting of this server: ${name}`)
  return [...deprecated, ...exposed, ...unread]
}

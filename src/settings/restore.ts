/** The settings of a server that `svc-server restore` reads where its arguments leave them out. */
import { Secret } from '../value/secret.ts'
import { type DatabaseAddress, parseDatabaseUrl } from './addresses.ts'
import { isPepper } from './oidc.ts'
import { fault, invalid, type ProcessEnvironment, readSecret } from './sources.ts'

const URL_RULE = 'postgres://user:password@host:port/database'
/** The argument of `--documents` for a file in the root. */
const SQLITE = 'sqlite'

export interface RestoreDatabases {
  readonly identity: DatabaseAddress
  /** Null keeps the documents in the Product root. */
  readonly documents: DatabaseAddress | null
}

/** Throws SERVER_CONFIGURATION_MISSING, SERVER_DATABASE_URL_INVALID. */
export function readRestoreDatabases(
  environment: ProcessEnvironment,
  given: { readonly database: string | null; readonly documents: string | null },
): RestoreDatabases {
  const identity = databaseOf(environment, given.database, {
    argument: '--database',
    variable: 'SERVICE_IDENTITY_DATABASE_URL',
  })
  if (given.documents === SQLITE) return { identity: identity!, documents: null }
  const documents = databaseOf(environment, given.documents, {
    argument: '--documents',
    variable: 'SERVICE_PLATFORM_DATABASE_URL',
  })
  return { identity: identity!, documents }
}

function databaseOf(
  environment: ProcessEnvironment,
  url: string | null,
  names: {
    readonly argument: string
    readonly variable: 'SERVICE_IDENTITY_DATABASE_URL' | 'SERVICE_PLATFORM_DATABASE_URL'
  },
): DatabaseAddress | null {
  const source =
    url === null
      ? readSecret(environment, names.variable)
      : { name: names.argument, secret: new Secret(url) }
  if (source === null) return null
  const address = parseDatabaseUrl(source.secret)
  if (address === null) throw fault('SERVER_DATABASE_URL_INVALID', source.name, URL_RULE)
  return address
}

/** Returns the pepper that the server will have; null if none is set. */
export function findIdentityPepper(environment: ProcessEnvironment): Secret | null {
  const name = 'SERVICE_PLATFORM_IDENTITY_PEPPER'
  if (environment[name] === undefined && environment[`${name}_FILE`] === undefined) return null
  const { secret } = readSecret(environment, name)!
  if (isPepper(secret.reveal())) return secret
  throw invalid(name, 'URL-safe base64 without padding of exactly 32 bytes')
}

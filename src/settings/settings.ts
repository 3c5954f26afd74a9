/**
 * The environment and the files that it names become one frozen configuration or one SERVER_*
 * Fault, before any connection is made and without changing anything.
 */
import type { Fault } from '../errors/fault.ts'
import { type AddressRange, parseNetwork } from '../system/address-ranges.ts'
import { absolutePath, isRootPath } from '../system/files.ts'
import type { JwtProvider } from '../value/jwt-providers.ts'
import type { Secret } from '../value/secret.ts'
import {
  type DatabaseAddress,
  isAppOrigin,
  isOrigin,
  type Listener,
  overlaps,
  parseDatabaseUrl,
  parseListener,
} from './addresses.ts'
import { type BackupSettings, backupSettingIn, readBackups } from './backups.ts'
import { readIdentityProviders } from './identity-providers.ts'
import { readJwtProviders } from './jwt-providers.ts'
import { type LogSettings, readLogSettings } from './logs.ts'
import { type MemorySettings, readMemory } from './memory.ts'
import { isPepper, type OidcProvider } from './oidc.ts'
import { type RealtimeSettings, readRealtime } from './realtime.ts'
import { type RetentionSettings, readRetention } from './retention.ts'
import {
  deprecatedNames,
  exposedNames,
  fault,
  invalid,
  type ProcessEnvironment,
  readPlain,
  readSecret,
  type SecretSource,
  wholeNumber,
} from './sources.ts'
import { readS3Host, readStorage, type StorageSettings } from './storage.ts'
import { readTls, type TlsSettings } from './tls.ts'
import { readTraces, type TraceSettings } from './traces.ts'
import type { PlainName, SecretName } from './variables.ts'

export type SettingsMode =
  | 'check'
  | 'doctor'
  | 'migrate'
  | 'recover-bootstrap'
  | 'recover-owner'
  | 'rotate-keys'
  | 'serve'
  | 'upgrade'
  | 'verify-storage'

export interface ServerSettings {
  readonly identityDatabase: DatabaseAddress
  /** base64url of 32 bytes. */
  readonly identityPepper: Secret
  readonly stateDirectory: string
  readonly management: ManagementSettings
  /** The certificate of the listeners before which no proxy ends TLS; null if none ends TLS. */
  readonly tls: TlsSettings | null
  readonly oidc: OidcProvider | null
  /** Issuers of the tokens of CI jobs and service accounts. */
  readonly workloads: readonly OidcProvider[]
  readonly managedSource: ManagedSource | null
  readonly product: ProductSettings | null
  readonly memory: MemorySettings
  readonly logs: LogSettings
  /** Retention of ended sessions and other past records in the identity database. */
  readonly retention: RetentionSettings
  readonly realtime: RealtimeSettings
  /** Null where traces are not exported. */
  readonly traces: TraceSettings | null
  /** `required`: the server does not start on a system that cannot sandbox Functions. */
  readonly sandbox: 'preferred' | 'required'
  /** Peppers that `migrate` may replace; no other mode replaces one. */
  readonly confirmedPepperChanges: readonly PepperKind[]
  /** Deprecated names in use, for a warning. */
  readonly deprecatedNames: readonly string[]
  /** Settings whose secret file every user of the machine can read, for a warning. */
  readonly exposedNames: readonly string[]
}

export interface ManagementSettings {
  readonly listen: Listener
  /** True if a trusted proxy terminates TLS, so that its X-Forwarded-For names the peer. */
  readonly tlsTerminated: boolean
  /** True if the listener ends TLS with the certificate of the server. */
  readonly endsTls: boolean
  readonly publicUrl: string | null
}

export interface ManagedSource {
  readonly enrollmentToken: Secret
  readonly authority: string
}

export interface ProductSettings {
  readonly root: string
  /** Processes that answer the application origin; 1 for the main process alone. */
  readonly applicationProcesses: number
  /** Behind a trusted proxy that ends TLS, unless the server has a certificate. */
  readonly applicationListen: Listener | null
  /** True if a trusted proxy terminates TLS before the application listener. */
  readonly applicationTlsTerminated: boolean
  /** True if the application listener ends TLS with the certificate of the server. */
  readonly applicationEndsTls: boolean
  /** The host, without a port, at whose root the application listener answers S3 clients. */
  readonly s3Host: string | null
  readonly allowedOrigins: readonly string[]
  /** Networks that Actions may call although they are not public, also without TLS. */
  readonly actionNetworks: readonly ActionNetwork[]
  /** Null keeps the documents in the Product root. */
  readonly database: DatabaseAddress | null
  /** Issuers whose tokens identify the callers of Functions. */
  readonly jwtProviders: readonly JwtProvider[]
  readonly storage: StorageSettings
  /** Null makes no backups but those whose recipients an operator names. */
  readonly backups: BackupSettings | null
}

export interface ActionNetwork {
  /** The text of the setting. */
  readonly text: string
  readonly range: AddressRange
}

export type PepperKind = 'identity' | 'oidc-subject'

export const PEPPER_CHANGE_PHRASE = 'void-every-session-and-invitation'
export const SUBJECT_PEPPER_CHANGE_PHRASE = 'void-every-identity-link'
export const RECOVERY_PHRASE = 'replace-lost-initial-owner-code'
export const OWNER_RECOVERY_PHRASE = 'issue-owner-invitation'
const ALLOWED_ORIGINS_MAX = 64
const ORIGIN_RULE =
  'an origin as browsers send it, such as https://app.example.com: lower case, an international ' +
  'name in its xn-- form, no wildcard, path, trailing slash or default port, and no blanks between'
const ACTION_NETWORKS_MAX = 64
const PROCESSES = { min: 1, max: 64, unit: '' }
/** Shorter tokens could be guessed. */
const MANAGED_TOKEN_BYTES_MIN = 32
/** It travels in one header, whose limit is 16 KiB. */
const MANAGED_TOKEN_BYTES_MAX = 8192

/**
 * Throws SERVER_CONFIGURATION_MISSING, SERVER_CONFIGURATION_INVALID, SERVER_DATABASE_URL_INVALID,
 * SERVER_SECRET_CONFIGURATION_CONFLICT, SERVER_OIDC_CONFIG_INVALID, the two managed source codes
 * and, for the recovery modes, SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID and
 * SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID. The violations name variables; nothing in a Fault
 * holds a value.
 */
export function parseSettings(environment: ProcessEnvironment, mode: SettingsMode): ServerSettings {
  const identityDatabase = database(environment, 'SERVICE_IDENTITY_DATABASE_URL')!
  const identityPepper = pepper(environment)
  const tls = readTls(environment)
  const ofProduct = product(environment, tls)
  const memory = readMemory(environment, ofProduct?.applicationProcesses ?? 1)
  const configuration: ServerSettings = {
    identityDatabase,
    identityPepper,
    stateDirectory: directory(environment, 'SERVICE_STATE_DIRECTORY')!,
    management: management(environment, tls),
    tls,
    ...readIdentityProviders(environment, identityPepper),
    managedSource: managedSource(environment),
    product: ofProduct,
    memory,
    logs: readLogSettings(environment),
    retention: readRetention(environment),
    realtime: readRealtime(environment, memory),
    traces: readTraces(environment),
    sandbox: sandbox(environment),
    confirmedPepperChanges: confirmedPepperChanges(environment, mode),
    deprecatedNames: deprecatedNames(environment, [
      'SERVICE_IDENTITY_DATABASE_URL',
      'SERVICE_PLATFORM_DATABASE_URL',
    ]),
    exposedNames: exposedNames(environment),
  }
  requireDistinctListeners(configuration)
  requireRecoveryPhrase(environment, mode)
  return freeze(configuration)
}

function database(environment: ProcessEnvironment, name: SecretName): DatabaseAddress | null {
  const source = readSecret(environment, name)
  if (source === null) return null
  const address = parseDatabaseUrl(source.secret)
  if (address === null) {
    const rule = 'postgres://user:password@host:port/database'
    throw fault('SERVER_DATABASE_URL_INVALID', source.name, rule)
  }
  return address
}

function pepper(environment: ProcessEnvironment): Secret {
  const { name, secret } = readSecret(environment, 'SERVICE_PLATFORM_IDENTITY_PEPPER')!
  if (!isPepper(secret.reveal())) {
    throw invalid(name, 'URL-safe base64 without padding of exactly 32 bytes')
  }
  return secret
}

function directory(environment: ProcessEnvironment, name: PlainName): string | null {
  const value = readPlain(environment, name)
  if (value === null) return null
  const path = absolutePath(value)
  if (path === null || isRootPath(path)) throw invalid(name, 'an absolute path other than /')
  return path
}

function management(environment: ProcessEnvironment, tls: TlsSettings | null): ManagementSettings {
  const name = 'SERVICE_MANAGEMENT_LISTEN'
  const listen = listener(environment, name)!
  const tlsTerminated = flag(environment, 'SERVICE_MANAGEMENT_TLS_TERMINATED', 'true')
  if (!listen.loopback && !tlsTerminated && tls === null) {
    const rule =
      'a loopback address; another one needs SERVICE_MANAGEMENT_TLS_TERMINATED=true, ' +
      'SERVICE_TLS_CERTIFICATE_FILE or SERVICE_TLS_ACME_DOMAIN'
    throw invalid(name, rule)
  }
  const endsTls = tls !== null && !tlsTerminated
  return { listen, tlsTerminated, endsTls, publicUrl: publicUrl(environment) }
}

function listener(environment: ProcessEnvironment, name: PlainName): Listener | null {
  const value = readPlain(environment, name)
  if (value === null) return null
  const listen = parseListener(value)
  if (listen === null) throw invalid(name, 'address:port such as 127.0.0.1:3220 or [::1]:3220')
  return listen
}

/** Returns false if the variable is unset; any value but the expected one is a mistake. */
function flag(environment: ProcessEnvironment, name: PlainName, expected: string): boolean {
  const value = readPlain(environment, name)
  if (value !== null && value !== expected) throw invalid(name, `exactly ${expected}, or unset`)
  return value !== null
}

function publicUrl(environment: ProcessEnvironment): string | null {
  const name = 'SERVICE_PUBLIC_MANAGEMENT_URL'
  const value = readPlain(environment, name)
  if (value !== null && !isOrigin(value, ['https', 'loopback-http'])) {
    throw invalid(name, 'a canonical HTTPS origin such as https://manage.example.com')
  }
  return value
}

function managedSource(environment: ProcessEnvironment): ManagedSource | null {
  const tokenName = 'SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN'
  const name = 'SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY'
  const token = readSecret(environment, tokenName)
  const authority = readPlain(environment, name)
  const incomplete = 'SERVER_MANAGED_SOURCE_CONFIGURATION_INCOMPLETE'
  if (token !== null) requireToken(token)
  if (authority !== null && !isOrigin(authority, ['https'])) {
    const rule = 'an exact canonical HTTPS origin'
    throw fault('SERVER_MANAGED_SOURCE_AUTHORITY_INVALID', name, rule)
  }
  if (token !== null && authority === null)
    throw fault(incomplete, token.name, `together with ${name}`)
  if (token === null && authority !== null)
    throw fault(incomplete, name, `together with ${tokenName}`)
  return token === null || authority === null ? null : { enrollmentToken: token.secret, authority }
}

/** Characters of one header value; a comma could join two headers into one. */
function requireToken({ name, secret }: SecretSource): void {
  const token = secret.reveal()
  const [least, most] = [MANAGED_TOKEN_BYTES_MIN, MANAGED_TOKEN_BYTES_MAX]
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(token) || token.length < least || token.length > most) {
    throw invalid(name, `${least} to ${most} visible ASCII characters without a comma`)
  }
}

function product(environment: ProcessEnvironment, tls: TlsSettings | null): ProductSettings | null {
  const root = directory(environment, 'SERVICE_PRODUCT_ROOT')
  const listenName = 'SERVICE_APPLICATION_LISTEN'
  const tlsName = 'SERVICE_APPLICATION_TLS_TERMINATED'
  const applicationListen = listener(environment, listenName)
  const tlsTerminated = flag(environment, tlsName, 'true')
  if (applicationListen !== null && !tlsTerminated && tls === null) {
    const rule =
      `only together with ${tlsName}=true, SERVICE_TLS_CERTIFICATE_FILE or ` +
      'SERVICE_TLS_ACME_DOMAIN'
    throw invalid(listenName, rule)
  }
  if (applicationListen === null && tlsTerminated) {
    throw invalid(tlsName, `only together with ${listenName}`)
  }
  const platformDatabase = database(environment, 'SERVICE_PLATFORM_DATABASE_URL')
  const origins = allowedOrigins(environment)
  const networks = actionNetworks(environment)
  const s3Host = readS3Host(environment)
  if (s3Host !== null && applicationListen === null) {
    throw invalid('SERVICE_S3_HOST', `only together with ${listenName}`)
  }
  const authConfigPath = authConfig(environment)
  const storage = readStorage(environment)
  if (root !== null) {
    const database = platformDatabase
    const jwtProviders =
      authConfigPath === null ? [] : readJwtProviders(`${root}/${authConfigPath}`)
    const lists = { allowedOrigins: origins ?? [], actionNetworks: networks ?? [], jwtProviders }
    const applicationProcesses = wholeNumber(
      environment,
      'SERVICE_APPLICATION_PROCESSES',
      PROCESSES,
    )
    const backups = readBackups(environment, { root, files: storage.s3 })
    const parts = { applicationListen, applicationProcesses, s3Host, database, storage, backups }
    const ends = {
      applicationTlsTerminated: tlsTerminated,
      applicationEndsTls: tls !== null && applicationListen !== null && !tlsTerminated,
    }
    return { root, ...ends, ...parts, ...lists }
  }
  if (storage.s3 !== null) throw needsRoot('SERVICE_STORAGE_S3_ENDPOINT')
  if (applicationListen !== null) throw needsRoot(listenName)
  if (platformDatabase !== null) throw needsRoot('SERVICE_PLATFORM_DATABASE_URL')
  if (origins !== null) throw needsRoot('SERVICE_PRODUCT_ALLOWED_ORIGINS')
  if (networks !== null) throw needsRoot('SERVICE_ACTION_ALLOWED_NETWORKS')
  if (authConfigPath !== null) throw needsRoot('SERVICE_PRODUCT_AUTH_CONFIG')
  const ofBackups = backupSettingIn(environment)
  if (ofBackups !== null) throw needsRoot(ofBackups)
  return null
}

function needsRoot(name: string): Fault {
  return invalid(name, 'only together with SERVICE_PRODUCT_ROOT')
}

function allowedOrigins(environment: ProcessEnvironment): readonly string[] | null {
  const name = 'SERVICE_PRODUCT_ALLOWED_ORIGINS'
  const value = readPlain(environment, name)
  if (value === null) return null
  const origins = value.split(',')
  if (origins.length > ALLOWED_ORIGINS_MAX) throw invalid(name, 'at most 64 origins')
  const wrong = origins.findIndex(
    (each) => !isOrigin(each, ['https', 'http']) && !isAppOrigin(each),
  )
  if (wrong !== -1) throw invalid(name, `entry ${wrong + 1} to be ${ORIGIN_RULE}`)
  if (new Set(origins).size !== origins.length) throw invalid(name, 'each origin once')
  return origins
}

function actionNetworks(environment: ProcessEnvironment): readonly ActionNetwork[] | null {
  const name = 'SERVICE_ACTION_ALLOWED_NETWORKS'
  const value = readPlain(environment, name)
  if (value === null) return null
  const texts = value.split(',')
  if (texts.length > ACTION_NETWORKS_MAX) throw invalid(name, 'at most 64 networks')
  if (new Set(texts).size !== texts.length) throw invalid(name, 'each network once')
  return texts.map((text) => {
    const range = parseNetwork(text)
    if (range !== null) return { text, range }
    throw invalid(name, 'networks, separated by commas alone: 10.1.0.0/16 or fd00::/8')
  })
}

/** Returns a path relative to the Product root, which must not lead out of it. */
function authConfig(environment: ProcessEnvironment): string | null {
  const name = 'SERVICE_PRODUCT_AUTH_CONFIG'
  const value = readPlain(environment, name)
  if (value === null) return null
  const segments = value.split('/')
  const plain = segments.every((segment) => !['', '.', '..'].includes(segment))
  if (!plain || value.includes('\\') || value.length > 1024) {
    throw invalid(name, 'a path relative to the Product root, without empty, . or .. segments')
  }
  return value
}

function sandbox(environment: ProcessEnvironment): 'preferred' | 'required' {
  return flag(environment, 'SERVICE_RUNNER_SANDBOX', 'required') ? 'required' : 'preferred'
}

/**
 * Only `migrate` reads the confirmations: one that stays in the settings of the server must not
 * accept the next pepper that is wrong.
 */
function confirmedPepperChanges(
  environment: ProcessEnvironment,
  mode: SettingsMode,
): readonly PepperKind[] {
  if (mode !== 'migrate') return []
  const kinds: PepperKind[] = []
  if (flag(environment, 'SERVICE_PEPPER_CHANGE_CONFIRM', PEPPER_CHANGE_PHRASE)) {
    kinds.push('identity')
  }
  if (flag(environment, 'SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM', SUBJECT_PEPPER_CHANGE_PHRASE)) {
    kinds.push('oidc-subject')
  }
  return kinds
}

function requireDistinctListeners({ management, product, tls }: ServerSettings): void {
  const other = product?.applicationListen
  const challenges = tls?.acme?.httpListen
  if (challenges && [management.listen, other].some((each) => each && overlaps(challenges, each))) {
    const rule = 'another port than the other listeners, or another address of the machine'
    throw invalid('SERVICE_TLS_ACME_HTTP_LISTEN', rule)
  }
  if (!other || !overlaps(other, management.listen)) return
  const rule = 'another port than the Management listener, or another address of the machine'
  throw invalid('SERVICE_APPLICATION_LISTEN', rule)
}

/** Prevents accidents only: the operator of the mode already holds the pepper and the database. */
function requireRecoveryPhrase(environment: ProcessEnvironment, mode: SettingsMode): void {
  const [name, phrase, code] =
    mode === 'recover-owner'
      ? ([
          'SERVICE_OWNER_RECOVERY_CONFIRM',
          OWNER_RECOVERY_PHRASE,
          'SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID',
        ] as const)
      : ([
          'SERVICE_BOOTSTRAP_RECOVERY_CONFIRM',
          RECOVERY_PHRASE,
          'SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID',
        ] as const)
  const recovers = mode === 'recover-owner' || mode === 'recover-bootstrap'
  if (recovers && environment[name] !== phrase) throw fault(code, name, `exactly ${phrase}`)
}

function freeze<T extends object>(value: T): T {
  for (const item of Object.values(value)) {
    if (item !== null && typeof item === 'object') freeze(item)
  }
  return Object.freeze(value)
}

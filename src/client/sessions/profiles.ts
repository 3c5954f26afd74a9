/**
 * The stored session: one profile in credentials-v1.json (contract/management.md, Client
 * credentials file). Schema 2 keeps the authentication origin apart from the Management origin;
 * schema 1 had one origin for both and is read until the next refresh or login replaces it.
 */
import { isAbsolute, join } from 'node:path'
import { Fault, isFault } from '../../errors/fault.ts'
import {
  ensurePrivateDirectory,
  removeFileDurably,
  restrictToOwner,
  writeFileAtomic,
} from '../../system/files.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { OperatorId, SessionId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { INT64 } from '../../value/tagged.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { idField, text } from '../../wire/fields.ts'
import { rule } from '../../wire/rules.ts'
import { type Infer, schema } from '../../wire/schema.ts'
import type { Context } from '../contexts.ts'
import type { ClientEnvironment } from '../environment.ts'
import { readIfPresent, sweepTemporaries, withPath } from '../files.ts'
import { ALLOW_LOOPBACK_HTTP, canonicalOrigin, parseOrigin } from '../origins.ts'
import { usage } from '../usage.ts'
import { withLock } from './locks.ts'

export const CREDENTIALS_FILE = 'credentials-v1.json'
const CREDENTIALS_BYTES_MAX = 64 * 1024

export interface Profile {
  readonly authenticationOrigin: string
  readonly managementOrigin: string
  readonly operatorId: OperatorId
  readonly operatorName: string
  readonly sessionId: SessionId
  readonly accessToken: Secret
  readonly accessExpiresAtMicros: bigint
  /** null for a workload and for a derived session, which end with their access token. */
  readonly refreshToken: Secret | null
  readonly refreshExpiresAtMicros: bigint
}

export class ProfileStore {
  readonly path: string
  readonly #directory: string
  readonly #lock: string
  readonly #context: Pick<Context, 'environment' | 'output'>

  /**
   * Opens the store of the operator, or the one in an absolute directory. Throws CLIENT_USAGE if no
   * directory for the file is known.
   */
  constructor(context: Pick<Context, 'environment' | 'output'>, directory?: string) {
    this.#directory = directory ?? credentialsDirectory(context.environment)
    this.path = join(this.#directory, CREDENTIALS_FILE)
    this.#lock = join(this.#directory, 'credentials-v1.lock')
    this.#context = context
  }

  /**
   * Returns null if no session is stored. Throws CLIENT_CREDENTIALS_INVALID, CLIENT_FILE_FAILED,
   * and CLIENT_ORIGIN_INVALID for an origin that a login would reject now.
   */
  async read(): Promise<Profile | null> {
    const profile = await this.#readAny()
    if (profile !== null) {
      this.#requireOrigin(profile.authenticationOrigin)
      this.#requireOrigin(profile.managementOrigin)
    }
    return profile
  }

  /** Returns what is known: a rejected request reads the file again. */
  async newest(known: Profile): Promise<Profile> {
    return known
  }

  #requireOrigin(origin: string): void {
    try {
      parseOrigin(this.#context.environment, origin)
    } catch (error) {
      if (!isFault(error, 'CLIENT_ORIGIN_INVALID')) throw error
      const detail =
        `${this.path} names ${origin}: log in again, or set ${ALLOW_LOOPBACK_HTTP}=true ` +
        'for a server on this machine.'
      throw new Fault('CLIENT_ORIGIN_INVALID', { detail })
    }
  }

  /** Returns the stored profile without a check of its origins. */
  async #readAny(): Promise<Profile | null> {
    const bytes = readIfPresent(this.path, CREDENTIALS_BYTES_MAX)
    if (bytes === null) return null
    this.#restrict()
    const { readOr } = await import('../../wire/reading/read.ts')
    try {
      const file = readOr(CredentialsFile, parseStrictJson(bytes), ({ path, rule }) => {
        return new ValidationError(rule, path)
      })
      return profileOf(file)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw new Fault('CLIENT_CREDENTIALS_INVALID', { detail: `${this.path}: ${error.message}.` })
    }
  }

  /** Makes the file private again and warns, since its tokens may have been read. */
  #restrict(): void {
    const mode = withPath(this.path, () => restrictToOwner(this.path))
    if (mode === null) return
    const outcome =
      mode.after === 0o600 ? 'svc restored 0600' : 'and svc cannot change that on its file system'
    void this.#context.output.warn(
      `warning: ${this.path} was open to other users (mode 0${mode.before.toString(8)}); ` +
        `${outcome}. If others use this machine, run \`svc logout\` and log in again.`,
    )
  }

  /** Runs `work`, which needs its own deadline, while no other process changes the profile. */
  async change<T>(signal: AbortSignal, work: (profile: Profile | null) => Promise<T>): Promise<T> {
    withPath(this.#directory, () => ensurePrivateDirectory(this.#directory))
    return withLock(this.#lock, this.#context.environment.system, signal, async () => {
      sweepTemporaries(this.path)
      return work(await this.#readAny())
    })
  }

  /** Stores the profile, mode 0600, durably. Call it inside `change` only. */
  write(profile: Profile): void {
    withPath(this.path, () => writeFileAtomic(this.path, formatProfile(profile), { mode: 0o600 }))
  }

  /** Removes the profile. Call it inside `change` only. */
  remove(): void {
    withPath(this.path, () => removeFileDurably(this.path))
  }
}

/** Returns the directory of the user's files of `svc`. Throws CLIENT_USAGE if none is known. */
export function credentialsDirectory(environment: ClientEnvironment): string {
  const configured = environment.variable('SERVICE_CONFIG_HOME')
  if (configured !== undefined && configured !== '') {
    if (isAbsolute(configured)) return configured
    throw usage('SERVICE_CONFIG_HOME must be an absolute path of a directory.')
  }
  const directory = platformDirectory(environment)
  if (directory !== null && isAbsolute(directory)) return join(directory, 'service')
  throw usage('No home directory is known. Set SERVICE_CONFIG_HOME to an absolute directory.')
}

function platformDirectory(environment: ClientEnvironment): string | null {
  const home = environment.variable('HOME') || environment.homeDirectory
  switch (environment.platform) {
    case 'win32':
      return environment.variable('APPDATA') ?? null
    case 'darwin':
      return join(home, 'Library', 'Application Support')
    default: {
      // The XDG specification requires relative paths to be ignored.
      const xdg = environment.variable('XDG_CONFIG_HOME') ?? ''
      return isAbsolute(xdg) ? xdg : home === '' ? null : join(home, '.config')
    }
  }
}

function formatProfile(profile: Profile): string {
  return `${canonicalJson({
    version: 2,
    authenticationOrigin: profile.authenticationOrigin,
    managementOrigin: profile.managementOrigin,
    operatorId: profile.operatorId,
    operatorName: profile.operatorName,
    sessionId: profile.sessionId,
    accessToken: profile.accessToken.reveal(),
    accessExpiresAtMicros: String(profile.accessExpiresAtMicros),
    refreshToken: profile.refreshToken?.reveal() ?? null,
    refreshExpiresAtMicros: String(profile.refreshExpiresAtMicros),
  })}\n`
}

export function isAccessToken(text: string): boolean {
  return /^rk_at_v1_[A-Za-z0-9_-]{43}$/.test(text)
}

export function isRefreshToken(text: string): boolean {
  return /^rk_rt_v1_[A-Za-z0-9_-]{96}$/.test(text)
}

const Origin = schema([
  'string',
  ':',
  rule('a canonical origin', (text: string) => canonicalOrigin(text) === text),
])
const Micros = schema([
  text(INT64, 'a time'),
  ':',
  rule('a time', (decimal: string) => BigInt.asIntN(64, BigInt(decimal)) === BigInt(decimal)),
])

const SessionFields = schema({
  managementOrigin: Origin,
  operatorId: idField('opr'),
  operatorName: ['string', ':', rule('a name', (name: string) => name.length <= 512)],
  sessionId: idField('ops'),
  accessToken: ['string', ':', rule('an access token', isAccessToken)],
  accessExpiresAtMicros: Micros,
  refreshToken: [['string', ':', rule('a refresh token', isRefreshToken)], '|', 'null'],
  refreshExpiresAtMicros: Micros,
})

/** The file in either version; no rule repeats a token. */
const CredentialsFile = schema([
  { '...': SessionFields, version: '1' },
  '|',
  { '...': SessionFields, version: '2', authenticationOrigin: Origin },
])

function profileOf(file: Infer<typeof CredentialsFile>): Profile {
  const { managementOrigin, operatorId, operatorName, sessionId } = file
  return {
    authenticationOrigin: file.version === 2 ? file.authenticationOrigin : managementOrigin,
    managementOrigin,
    operatorId,
    operatorName,
    sessionId,
    accessToken: new Secret(file.accessToken),
    accessExpiresAtMicros: BigInt(file.accessExpiresAtMicros),
    refreshToken: file.refreshToken === null ? null : new Secret(file.refreshToken),
    refreshExpiresAtMicros: BigInt(file.refreshExpiresAtMicros),
  }
}

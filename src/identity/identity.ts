/** Operator identity of the server: opened and started once, closed at shutdown. */
import { Database } from '../database/database.ts'
import { toStartupFault } from '../database/errors.ts'
import { migrate } from '../database/migrate.ts'
import { requireSessions } from '../database/poolers.ts'
import { checkReadiness } from '../database/readiness.ts'
import type { Network } from '../system/guarded-fetch.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import { decodeBase64Url } from '../value/base64url.ts'
import type { Secret } from '../value/secret.ts'
import type { Actor } from './actor.ts'
import { type BootstrapOutcome, ensureBootstrap, recoverBootstrap } from './bootstrap.ts'
import { type BootstrapFiles, openBootstrapFiles } from './bootstrap-files.ts'
import type { IdentityCore } from './core.ts'
import { Credentials } from './credentials.ts'
import type { ManagedSource } from './managed-grants.ts'
import { DeniedLogins } from './oidc/denied-logins.ts'
import type { OidcProvider } from './oidc/provider.ts'
import { providerKeys } from './oidc/provider-keys.ts'
import type { TokenVerifier } from './oidc/tokens.ts'
import { reconcileRecoveryFile, recoverOwner } from './owner-recovery.ts'
import {
  type ConfiguredPepper,
  checkPeppers,
  configuredPeppers,
  type PepperKind,
  recordPeppers,
} from './pepper-checks.ts'
import { authenticate, whileAuthorized } from './sessions.ts'

export interface IdentityOptions {
  readonly databaseUrl: Secret
  /** base64url of 32 bytes. */
  readonly pepper: Secret
  /** Absolute path. */
  readonly stateDirectory: string
  /** Provider of external logins. Absent unless given. */
  readonly oidc?: OidcProvider | null
  /** Providers of workloads. Empty unless given. */
  readonly workloads?: readonly OidcProvider[]
  /** The control plane that owns grants. Absent unless given. */
  readonly managedSource?: ManagedSource | null
  /** Network access to the provider. Default: the real network. */
  readonly providerNetwork?: Network
  readonly system: System
  readonly log: Logger
}

export interface IdentityMigration {
  /** Schema versions. */
  readonly from: number
  readonly to: number
  readonly replacedPeppers: readonly PepperKind[]
}

/** Timeout of a readiness probe. */
const READINESS_TIMEOUT_MS = 3_000

export class Identity implements IdentityCore {
  readonly database: Database
  readonly system: System
  readonly credentials: Credentials
  /** null if no external identity is configured. */
  readonly oidc: TokenVerifier | null
  readonly workloads: readonly TokenVerifier[]
  readonly managedSource: ManagedSource | null
  readonly deniedLogins = new DeniedLogins()
  readonly #files: BootstrapFiles
  readonly #recoveryFiles: BootstrapFiles
  readonly #peppers: readonly ConfiguredPepper[]
  readonly #log: Logger
  #probe: Promise<boolean> | null = null

  constructor(options: IdentityOptions) {
    this.system = options.system
    this.credentials = new Credentials(decodeBase64Url(options.pepper.reveal()), options.system)
    this.#files = openBootstrapFiles(options.stateDirectory)
    this.#recoveryFiles = openBootstrapFiles(options.stateDirectory, 'owner-recovery')
    const { oidc = null, workloads = [] } = options
    const providers = oidc === null ? workloads : [oidc, ...workloads]
    this.#peppers = configuredPeppers(options.pepper, providers)
    this.#log = options.log
    this.oidc = oidc === null ? null : openVerifier(options, oidc)
    this.workloads = workloads.map((provider) => openVerifier(options, provider))
    this.managedSource = options.managedSource ?? null
    this.database = new Database({
      url: options.databaseUrl,
      onIdleLoss: (detail) => options.log.warn('identity.connection_lost', { detail }),
    })
  }

  /** Migrates, checks the peppers, then updates the owner codes. Throws SERVER_* Faults. */
  async startup(): Promise<BootstrapOutcome> {
    await this.migrate()
    const outcome = await this.#starting(() => ensureBootstrap(this, this.#files))
    await this.#starting(() => reconcileRecoveryFile(this, this.#recoveryFiles))
    if (outcome !== 'complete') {
      const message = `The first-owner code is in ${this.#files.path}.`
      this.#log.info('bootstrap.pending', { message, outcome })
    }
    return outcome
  }

  /**
   * Migrates the schema to this version and checks the peppers. Idempotent. `confirmed` lists the
   * peppers that may be replaced. Throws SERVER_PLATFORM_DATABASE_UNAVAILABLE, and
   * SERVER_IDENTITY_PEPPER_MISMATCH or SERVER_OIDC_PEPPER_MISMATCH, which change nothing if the
   * schema already has the checks.
   */
  async migrate(confirmed: readonly PepperKind[] = []): Promise<IdentityMigration> {
    await requireSessions(this.database, 'SERVER_PLATFORM_DATABASE_UNAVAILABLE')
    await this.#starting(() => checkPeppers(this, this.#peppers, confirmed))
    const result = await migrate(this.database, this.system.nowMicros())
    if (result.from !== result.to) this.#log.info('identity.migrated', { ...result })
    const replacedPeppers = await this.#starting(() =>
      recordPeppers(this, this.#peppers, confirmed),
    )
    return { ...result, replacedPeppers }
  }

  /** Returns the path of the file with the replacement. Throws SERVER_BOOTSTRAP_* Faults. */
  async recoverBootstrap(): Promise<string> {
    await this.migrate()
    await this.#starting(() => recoverBootstrap(this, this.#files))
    return this.#files.path
  }

  /** Returns the path of the file with the code. Throws SERVER_OWNER_RECOVERY_* Faults. */
  async recoverOwner(): Promise<string> {
    await this.migrate()
    await this.#starting(() => recoverOwner(this, this.#recoveryFiles))
    return this.#recoveryFiles.path
  }

  /**
   * Returns a name for an access token that this server issued, null for any other text. Causes no
   * look-up, so forged tokens cost no statement. The token may have expired or been revoked.
   */
  recognize(accessToken: string): string | null {
    return this.credentials.recognizeAccessToken(accessToken)?.toString('hex') ?? null
  }

  /** Verifiers of every provider, the one of people first. */
  get verifiers(): readonly TokenVerifier[] {
    return this.oidc === null ? this.workloads : [this.oidc, ...this.workloads]
  }

  /** Throws PLATFORM_AUTHENTICATION_FAILED. Reloads session and grants on every call. */
  authenticate(accessToken: string): Promise<Actor> {
    return authenticate(this, accessToken)
  }

  /** Runs `work` while the actor's session, operator and grants cannot change. See sessions.ts. */
  whileAuthorized<T>(actor: Actor, work: (current: Actor) => T): Promise<T> {
    return whileAuthorized(this, actor, work)
  }

  /** Returns whether PostgreSQL answers. Concurrent callers share one query. */
  async ready(): Promise<boolean> {
    this.#probe ??= this.#ask().finally(() => {
      this.#probe = null
    })
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), READINESS_TIMEOUT_MS)
    })
    try {
      return await Promise.race([this.#probe, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Closes the database after its running statements. */
  async close(): Promise<void> {
    await this.database.close()
  }

  async #ask(): Promise<boolean> {
    try {
      await checkReadiness(this.database)
      return true
    } catch (error) {
      this.#log.warn('identity.not_ready', { error })
      return false
    }
  }

  async #starting<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      throw toStartupFault(error)
    }
  }
}

export function openIdentity(options: IdentityOptions): Identity {
  return new Identity(options)
}

function openVerifier(options: IdentityOptions, provider: OidcProvider): TokenVerifier {
  const { system, log, providerNetwork: network } = options
  const given = { provider, system, log, ...(network !== undefined && { network }) }
  return { provider, system, keys: providerKeys(given) }
}

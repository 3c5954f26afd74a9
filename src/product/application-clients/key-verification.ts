/** Authenticates Application Keys for the gateway, many thousand times a second. */
import type { ApplicationKind } from '../../storage/control/application-clients.ts'
import {
  findCredentialByDigest,
  type KeyedCredential,
  markCredentialUsed,
} from '../../storage/control/application-credentials.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import { rethrowForApplication } from '../application-faults.ts'
import { KEY_PREFIXES, keyDigest } from './application-keys.ts'

export interface ApplicationCaller {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  /** Development keys never invoke a Function; the gateway rejects them. */
  readonly kind: ApplicationKind
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
}

interface VerifiedKey {
  readonly caller: ApplicationCaller
  /** Unix milliseconds of the last recorded use. */
  recordedAtMillis: number
}

interface KeysOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly keyring: Keyring
  /** Stores times of use; absent in the process that owns the control database. */
  readonly writeUses?: (uses: KeyUses) => void
}

/** Unix microseconds of the last use by credential. */
export type KeyUses = readonly (readonly [CredentialId, bigint])[]

const KEY = /^rk_(?:pub|sec|dev)_v1_[A-Za-z0-9_-]{43}$/
/** Maximum number of verified keys in memory. The one that was verified first is dropped. */
const VERIFIED_MAX = 10_000
/** Minimum time between two records of the use of a key: a busy key costs one write a minute. */
const RECORD_EVERY_MILLIS = 60_000
/** Time for which uses gather, so that one transaction writes those of all keys. */
const FLUSH_AFTER_MS = 1_000

export class ApplicationKeys {
  readonly #options: KeysOptions
  /**
   * Verified keys by their text. Callers send the text with every request, so it is in memory
   * anyway; a keyed digest instead would cost more than all other checks of the gateway.
   */
  readonly #verified = new Map<string, VerifiedKey>()
  /** Times of the last use that are not written yet. */
  readonly #unwritten = new Map<CredentialId, bigint>()
  #flush: NodeJS.Timeout | null = null

  constructor(options: KeysOptions) {
    this.#options = options
  }

  /**
   * Returns null unless the text is an active key of this Environment. Throws UNAVAILABLE or
   * INTERNAL if an unknown key cannot be looked up.
   */
  authenticate(text: string): ApplicationCaller | null {
    const verified = this.#verified.get(text)
    if (verified !== undefined) {
      this.#recordUse(verified)
      return verified.caller
    }
    const found = KEY.test(text) ? this.#readStored(() => this.#verify(text)) : null
    if (found === null) return null
    this.#insert(text, found)
    this.#recordUse(found)
    return found.caller
  }

  /**
   * Explains for the log why `authenticate` returned null. Throws UNAVAILABLE or INTERNAL if the
   * key cannot be looked up.
   */
  explain(text: string): {
    readonly reason: string
    readonly credential: Pick<ApplicationCaller, 'clientId' | 'credentialId'> | null
  } {
    if (!KEY.test(text))
      return { reason: 'the key does not have the form of an Application Key', credential: null }
    const found = this.#readStored(() => this.#find(text))
    if (found === null) return { reason: 'no credential has this key', credential: null }
    const { clientId, credentialId, state } = found.credential
    const isActive = state === 'active'
    const reason = isActive ? 'the key has the prefix of another kind' : `the key is ${state}`
    return { reason, credential: { clientId, credentialId } }
  }

  /** Drops all verified keys; called after every change of a credential, which may revoke one. */
  forget(): void {
    this.#verified.clear()
  }

  /** Writes the pending times of use and stops. */
  close(): void {
    this.#writeUses()
    this.#verified.clear()
  }

  #readStored<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      return rethrowForApplication(error)
    }
  }

  #verify(text: string): VerifiedKey | null {
    const found = this.#find(text)
    if (found === null) return null
    const { credential, kind } = found
    // The prefix must be that of the stored kind: a key never acts as one of another kind.
    if (credential.state !== 'active' || !text.startsWith(KEY_PREFIXES[kind])) return null
    const { credentialId, clientId, scopes, rateLimit } = credential
    return {
      caller: { credentialId, clientId, kind, scopes, rateLimit },
      recordedAtMillis: Number((credential.lastUsedAtMicros ?? 0n) / 1000n),
    }
  }

  /** Finds the credential of the key, in any state. */
  #find(text: string): KeyedCredential | null {
    const { control, keyring } = this.#options
    for (const keyId of keyring.ids) {
      const digest = keyDigest(keyring, keyId, text)
      const found = control.read((reader) => findCredentialByDigest(reader, digest))
      if (found?.keyId === keyId && digestEquals(found.digest, digest)) return found
    }
    return null
  }

  #insert(text: string, found: VerifiedKey): void {
    if (this.#verified.size >= VERIFIED_MAX) {
      const { value: oldest } = this.#verified.keys().next()
      if (oldest !== undefined) this.#verified.delete(oldest)
    }
    this.#verified.set(text, found)
  }

  #recordUse(key: VerifiedKey): void {
    const now = this.#options.system.nowMillis()
    if (now - key.recordedAtMillis < RECORD_EVERY_MILLIS) return
    key.recordedAtMillis = now
    this.#unwritten.set(key.caller.credentialId, BigInt(now) * 1000n)
    if (this.#flush !== null) return
    this.#flush = setTimeout(() => this.#writeUses(), FLUSH_AFTER_MS)
    this.#flush.unref()
  }

  /** Passes on all times of use. */
  #writeUses(): void {
    if (this.#flush !== null) clearTimeout(this.#flush)
    this.#flush = null
    if (this.#unwritten.size === 0) return
    const uses = [...this.#unwritten]
    this.#unwritten.clear()
    const { writeUses = (all: KeyUses) => this.writeUses(all) } = this.#options
    writeUses(uses)
  }

  /** Writes times of use in one transaction. A failure loses them and fails no request. */
  writeUses(uses: KeyUses): void {
    try {
      this.#options.control.transaction((tx) => {
        for (const [credentialId, atMicros] of uses) markCredentialUsed(tx, credentialId, atMicros)
      })
    } catch (error) {
      this.#options.log.warn('product.last_used_lost', { error })
    }
  }
}

/** Recognises Application Keys for the gateway, many thousand times a second. */
import type { ApplicationKind } from '../../storage/control/application-clients.ts'
import {
  type CredentialOfKey,
  findCredentialByDigest,
  markCredentialUsed,
} from '../../storage/control/application-credentials.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import { rethrow } from '../serving/targets.ts'
import { KEY_PREFIXES, keyDigest } from './application-credentials.ts'

export interface ApplicationCaller {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  /** Development keys never invoke a Function; refusing them is left to the gateway. */
  readonly kind: ApplicationKind
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
}

interface Known {
  readonly caller: ApplicationCaller
  /** When `last_used_at` was last brought up to date. */
  notedAtMillis: number
}

interface KeysOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly keyring: Keyring
}

const KEY = /^rk_(?:pub|sec|dev)_v1_[A-Za-z0-9_-]{43}$/
const KNOWN_MAX = 10_000
const NOTE_EVERY_MILLIS = 60_000
const FLUSH_AFTER_MS = 1_000

export class ApplicationKeys {
  readonly #options: KeysOptions
  /**
   * Verified keys by their text. The text is what callers send with every request, so it is in
   * memory anyway; a keyed digest instead would cost more than the rest of the gateway's checks.
   */
  readonly #known = new Map<string, Known>()
  /** Uses that are not written yet. */
  readonly #used = new Map<CredentialId, bigint>()
  #flush: NodeJS.Timeout | null = null

  constructor(options: KeysOptions) {
    this.#options = options
  }

  /**
   * null for a text that is no active key of this Environment. Throws UNAVAILABLE or INTERNAL
   * where a key that was not seen yet cannot be looked up.
   */
  authenticate(text: string): ApplicationCaller | null {
    const known = this.#known.get(text)
    if (known !== undefined) {
      this.#note(known)
      return known.caller
    }
    const found = KEY.test(text) ? this.#lookUp(() => this.#verify(text)) : null
    if (found === null) return null
    this.#keep(text, found)
    this.#note(found)
    return found.caller
  }

  /**
   * Returns the reason why `authenticate` returned null, for the log. Throws UNAVAILABLE or
   * INTERNAL where the key cannot be looked up.
   */
  explain(text: string): {
    readonly reason: string
    readonly credential: Pick<ApplicationCaller, 'clientId' | 'credentialId'> | null
  } {
    if (!KEY.test(text))
      return { reason: 'the key does not have the form of one', credential: null }
    const found = this.#lookUp(() => this.#find(text))
    if (found === null) return { reason: 'no credential has this key', credential: null }
    const { clientId, credentialId, state } = found.credential
    const isActive = state === 'active'
    const reason = isActive ? 'the key has the prefix of another kind' : `the key is ${state}`
    return { reason, credential: { clientId, credentialId } }
  }

  /** After every change of a credential: what was verified may be revoked. */
  forget(): void {
    this.#known.clear()
  }

  /** Writes what is not written yet. */
  close(): void {
    this.#writeUsed()
    this.#known.clear()
  }

  #lookUp<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      return rethrow(error)
    }
  }

  #verify(text: string): Known | null {
    const found = this.#find(text)
    if (found === null) return null
    const { credential, kind } = found
    // A key of one kind never stands for another, whatever the row says.
    if (credential.state !== 'active' || !text.startsWith(KEY_PREFIXES[kind])) return null
    const { credentialId, clientId, scopes, rateLimit } = credential
    return {
      caller: { credentialId, clientId, kind, scopes, rateLimit },
      notedAtMillis: Number((credential.lastUsedAtMicros ?? 0n) / 1000n),
    }
  }

  /** The credential of the key in any state; null where there is none. */
  #find(text: string): CredentialOfKey | null {
    const { control, keyring } = this.#options
    for (const keyId of keyring.ids) {
      const digest = keyDigest(keyring, keyId, text)
      const found = control.read((reader) => findCredentialByDigest(reader, digest))
      if (found?.keyId === keyId && digestEquals(found.digest, digest)) return found
    }
    return null
  }

  #keep(text: string, found: Known): void {
    if (this.#known.size >= KNOWN_MAX) {
      const { value: oldest } = this.#known.keys().next()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    this.#known.set(text, found)
  }

  #note(known: Known): void {
    const now = this.#options.system.nowMillis()
    if (now - known.notedAtMillis < NOTE_EVERY_MILLIS) return
    known.notedAtMillis = now
    this.#used.set(known.caller.credentialId, BigInt(now) * 1000n)
    if (this.#flush !== null) return
    this.#flush = setTimeout(() => this.#writeUsed(), FLUSH_AFTER_MS)
    this.#flush.unref()
  }

  /** One transaction for all; a failure costs the time of one use and no request. */
  #writeUsed(): void {
    if (this.#flush !== null) clearTimeout(this.#flush)
    this.#flush = null
    if (this.#used.size === 0) return
    const used = [...this.#used]
    this.#used.clear()
    try {
      this.#options.control.transaction((tx) => {
        for (const [credentialId, atMicros] of used) markCredentialUsed(tx, credentialId, atMicros)
      })
    } catch (error) {
      this.#options.log.warn('product.last_used_lost', { error })
    }
  }
}

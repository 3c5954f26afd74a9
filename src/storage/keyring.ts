/**
 * Keys of one Product root. No key of the file is used directly: every use derives its own key with
 * HKDF-SHA256, salted with the Environment, so that a key of one use or Environment reveals nothing
 * about another.
 */
import { hkdfSync } from 'node:crypto'
import { assert } from '../errors/assert.ts'
import { digestEquals } from '../system/digests.ts'
import type { EnvironmentId } from '../value/ids.ts'
import { KEY_BYTES, type KeyringFile } from '../value/product-root.ts'

export type KeyUse =
  | 'application-public-key'
  | 'application-key-digest'
  | 'backup-blob-name'
  | 'configuration-secret'
  | 'cursor-cipher'
  | 'cursor-digest'
  | 'download-grant'
  | 'download-url'
  | 'guest-identity'
  | 'http-event'
  | 'http-mount-token'
  | 'keyring-check'
  | 'operation-fingerprint'
  | 'storage-key'
  | 'upload-grant'

export class Keyring {
  /** ID of the key that new keys are derived from. */
  readonly activeId: string
  readonly #keys: ReadonlyMap<string, Uint8Array>
  readonly #salt: EnvironmentId
  readonly #derived = new Map<string, Uint8Array>()

  constructor(file: KeyringFile, environmentId: EnvironmentId) {
    this.activeId = file.active
    this.#keys = new Map(file.keys.map(({ id, key }) => [id, key]))
    this.#salt = environmentId
  }

  get ids(): string[] {
    return [...this.#keys.keys()]
  }

  /**
   * Returns whether `check` was derived, for the use `keyring-check`, from the key with this ID.
   */
  fits(keyId: string, check: Uint8Array): boolean {
    return this.#keys.has(keyId) && digestEquals(this.derive(keyId, 'keyring-check'), check)
  }

  /** Returns 32 bytes. `keyId` is one of `ids`; opening the root checked all that it references. */
  derive(keyId: string, use: KeyUse): Uint8Array {
    const name = `${keyId} ${use}`
    const cached = this.#derived.get(name)
    if (cached !== undefined) return cached
    const key = this.#keys.get(keyId)
    assert(key !== undefined, 'a key of the keyring')
    const derived = new Uint8Array(
      hkdfSync('sha256', key, this.#salt, `service/${use}/v1`, KEY_BYTES),
    )
    this.#derived.set(name, derived)
    return derived
  }
}

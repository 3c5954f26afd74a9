/** The mounts in memory, which every request of another service is looked up in. */
import type { ControlDatabase } from '../../storage/control/database.ts'
import { listMounts, type StoredMount } from '../../storage/control/http-mounts.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { digestEquals, secretDigest } from '../../system/digests.ts'
import { MOUNT_TOKEN } from '../../value/http/mounts.ts'
import type { Secret } from '../../value/secret.ts'
import { rethrowForApplication } from '../application-faults.ts'

export type { StoredMount } from '../../storage/control/http-mounts.ts'

/** Returns the digest under which the secret part of a path is stored. */
export function tokenDigest(keyring: Keyring, keyId: string, token: Secret | string): Buffer {
  return secretDigest(keyring.derive(keyId, 'http-mount-token'), 'http-mount-token', token)
}

export class MountDirectory {
  readonly #control: ControlDatabase
  readonly #keyring: Keyring
  /** Null until the next look-up. */
  #mounts: ReadonlyMap<string, StoredMount> | null = null

  constructor({
    control,
    keyring,
  }: {
    readonly control: ControlDatabase
    readonly keyring: Keyring
  }) {
    this.#control = control
    this.#keyring = keyring
  }

  /** Returns the mount; null if there is none. Throws UNAVAILABLE and INTERNAL. */
  find(name: string): StoredMount | null {
    this.#mounts ??= this.#read()
    return this.#mounts.get(name) ?? null
  }

  #read(): ReadonlyMap<string, StoredMount> {
    try {
      return new Map(this.#control.read(listMounts).map((mount) => [mount.name, mount]))
    } catch (error) {
      return rethrowForApplication(error)
    }
  }

  /** Returns whether the segment of a path is the secret of the mount. */
  isToken({ token }: StoredMount, segment: string): boolean {
    if (token === null || !MOUNT_TOKEN.test(segment)) return false
    return digestEquals(token.digest, tokenDigest(this.#keyring, token.keyId, segment))
  }

  /** Reads the mounts again at the next look-up, after a change of one. */
  forget(): void {
    this.#mounts = null
  }
}

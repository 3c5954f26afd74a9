/** Finds the `svc dev` of this machine that serves a root, and opens its management API. */
import { dirname, join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { readSecretFile } from '../../system/files.ts'
import { isProcessRunning } from '../../system/processes.ts'
import { LOCAL_SERVER_FILE, localAuthor, type RootDescriptor } from '../../value/product-root.ts'
import type { LocalServer } from '../../wire/files/local-server.ts'
import type { Context } from '../contexts.ts'
import { explanation } from '../explanations.ts'
import type { Profile } from '../sessions/profiles.ts'
import { OperatorSession, type SessionStore } from '../sessions/sessions.ts'
import { openRoot, type Root, resolvePath } from './roots.ts'

/** The last second of the year 9999: the session ends with `svc dev`. */
const NEVER_MICROS = 253_402_300_799_000_000n

/** A root that a `svc dev` serves. */
export interface LocalRoot extends Root {
  readonly session: OperatorSession
  readonly local: LocalServer
}

/** Returns null if no `svc dev` serves the directory. */
async function findLocalServer(directory: string): Promise<LocalServer | null> {
  const { LOCAL_SERVER_BYTES_MAX, parseLocalServer } = await import(
    '../../wire/files/local-server.ts'
  )
  try {
    const path = join(directory, LOCAL_SERVER_FILE)
    const server = parseLocalServer(readSecretFile(path, { bytesMax: LOCAL_SERVER_BYTES_MAX }))
    return isProcessRunning(server.pid) ? server : null
  } catch {
    // A directory without the file, or with another of this name.
    return null
  }
}

/** Returns the directory or the nearest one above it that `svc dev` serves; null for none. */
async function nearestServedRoot(directory: string): Promise<string | null> {
  for (let at = directory; ; at = dirname(at)) {
    if ((await findLocalServer(at)) !== null) return at
    if (at === dirname(at)) return null
  }
}

/** Returns the `svc dev` that serves the directory or one above it. Throws CLIENT_ROOT_INVALID. */
export async function openNearest(context: Context, path: string | undefined): Promise<LocalRoot> {
  const { environment } = context
  const start = resolvePath(environment, path ?? '.')
  const directory = await nearestServedRoot(start)
  const root = directory === null ? null : await openRoot(environment, directory)
  const remote = root === null ? null : await openLocal(context, root)
  if (remote !== null) return remote
  const next = 'Start `svc dev --root DIR`, then name that root with --root DIR.'
  throw new Fault('CLIENT_ROOT_INVALID', {
    detail: `No svc dev serves ${start} or a directory above it.`,
    cause: explanation({ next }),
  })
}

/** Returns null if no `svc dev` serves the root. */
export async function openLocal(context: Context, root: Root): Promise<LocalRoot | null> {
  const local = await findLocalServer(root.directory)
  if (local === null) return null
  const store = new LocalSessionStore(root.directory, root.descriptor)
  const session = new OperatorSession(context, store, await store.newest())
  return { ...root, session, local }
}

/** The session at `svc dev`, which every start replaces: each request reads it anew. */
class LocalSessionStore implements SessionStore {
  readonly #directory: string
  readonly #descriptor: RootDescriptor

  constructor(directory: string, descriptor: RootDescriptor) {
    this.#directory = directory
    this.#descriptor = descriptor
  }

  /** Throws CLIENT_SERVER_UNREACHABLE if no server serves the root now. */
  async newest(): Promise<Profile> {
    const server = await findLocalServer(this.#directory)
    if (server === null) {
      const detail = `No svc dev serves ${this.#directory}.`
      throw new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
    }
    const { managementUrl, accessToken } = server
    return {
      authenticationOrigin: managementUrl,
      managementOrigin: managementUrl,
      operatorName: 'svc dev',
      ...localAuthor(this.#descriptor.environmentId),
      accessToken,
      accessExpiresAtMicros: NEVER_MICROS,
      refreshToken: null,
      refreshExpiresAtMicros: NEVER_MICROS,
    }
  }

  async change<T>(_: AbortSignal, work: (profile: Profile | null) => Promise<T>): Promise<T> {
    return work(await this.newest())
  }

  write(): void {}
}

/** A target that remembers whether it answered last. */
import { isFault } from '../../errors/fault.ts'
import type { BackupTarget } from '../targets/targets.ts'

export class WatchedTarget implements BackupTarget {
  readonly location: string
  readonly #target: BackupTarget
  #isReachable = true
  #bytes = 0

  constructor(target: BackupTarget) {
    this.location = target.location
    this.#target = target
  }

  /** False if the newest access failed. */
  get isReachable(): boolean {
    return this.#isReachable
  }

  /** Bytes that were written. */
  get bytesWritten(): number {
    return this.#bytes
  }

  names(directory: string): Promise<string[]> {
    return this.#watched(() => this.#target.names(directory))
  }

  sizeOf(name: string): Promise<number | null> {
    return this.#watched(() => this.#target.sizeOf(name))
  }

  async *read(name: string): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#target.read(name)
      this.#isReachable = true
    } catch (error) {
      this.#note(error)
      throw error
    }
  }

  async write(
    name: string,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<number> {
    // The source of the bytes may fail too.
    const source = { failed: false }
    try {
      const written = await this.#target.write(name, watchedSource(bytes, source))
      this.#isReachable = true
      this.#bytes += written
      return written
    } catch (error) {
      if (!source.failed) this.#note(error)
      throw error
    }
  }

  remove(name: string): Promise<void> {
    return this.#watched(() => this.#target.remove(name))
  }

  removeDirectory(directory: string): Promise<void> {
    return this.#watched(() => this.#target.removeDirectory(directory))
  }

  async fileSystems(): Promise<readonly number[]> {
    return this.#watched(async () => (await this.#target.fileSystems?.()) ?? [])
  }

  async #watched<T>(access: () => Promise<T>): Promise<T> {
    try {
      const result = await access()
      this.#isReachable = true
      return result
    } catch (error) {
      this.#note(error)
      throw error
    }
  }

  #note(error: unknown): void {
    this.#isReachable = !isFault(error, 'UNAVAILABLE')
  }
}

async function* watchedSource(
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  source: { failed: boolean },
): AsyncGenerator<Uint8Array> {
  let isEnded = false
  try {
    yield* bytes
    isEnded = true
  } catch (error) {
    source.failed = !isEnded
    throw error
  }
}

/**
 * Returns memory that this process no longer needs: garbage when it has become idle, caches when it
 * stays idle, and garbage when it passes its part of the target with its runners. The runtime alone
 * collects garbage only once much of it was made, so an idle server would keep what its last load
 * left behind.
 */
import type { System } from '../system.ts'
import { heldBytes } from './machine-memory.ts'
import type { MemoryPlan } from './memory-plan.ts'

export interface MemoryKeeperOptions {
  readonly targetBytes: number
  readonly system: Pick<System, 'monotonicMillis'>
  /** Returns the bytes that this process and its runners hold. */
  readonly heldBytes: () => number
  /** CPU microseconds of this process since its start. */
  readonly cpuMicros: () => number
  /** Collects garbage. `isIdle` is true if a pause of some 50 ms delays no call. */
  readonly collect: (isIdle: boolean) => void
  /** Lets idle runners collect theirs; `withDocuments` drops the documents that they cache. */
  readonly trimRunners: (withDocuments: boolean) => void
  /** Drops what is cached and costs little to read again. */
  readonly dropCaches: () => void
}

/** Milliseconds between two checks. */
export const MEMORY_CHECK_MILLIS = 1_000
/** Share of one CPU below which the process counts as idle. */
const IDLE_SHARE = 0.05
/** Consecutive idle checks after which garbage is collected, and after which caches are dropped. */
const IDLE_CHECKS = 2
const DROP_CHECKS = 30
/** The first collection leaves objects to finalizers, and the next one frees what they held. */
const IDLE_COLLECTIONS = 2
/** Milliseconds between two collections above the target. */
const ABOVE_TARGET_MILLIS = 10_000

export class MemoryKeeper {
  readonly #options: MemoryKeeperOptions
  readonly #timer: ReturnType<typeof setInterval>
  #checkedAt: number
  #cpuMicros: number
  /** Consecutive idle checks. */
  #idleChecks = 0
  #collectedAt = Number.NEGATIVE_INFINITY
  #collections = 0

  constructor(options: MemoryKeeperOptions) {
    this.#options = options
    this.#checkedAt = options.system.monotonicMillis()
    this.#cpuMicros = options.cpuMicros()
    this.#timer = setInterval(() => this.check(), MEMORY_CHECK_MILLIS)
    this.#timer.unref()
  }

  /** Collections that it asked for. */
  get collections(): number {
    return this.#collections
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  check(): void {
    const { system, heldBytes, targetBytes } = this.#options
    const now = system.monotonicMillis()
    const isIdle = this.#wasIdle(now)
    this.#idleChecks = isIdle ? this.#idleChecks + 1 : 0
    const drops = this.#idleChecks === DROP_CHECKS
    if (drops) this.#options.dropCaches()
    const since = this.#idleChecks >= DROP_CHECKS ? DROP_CHECKS : IDLE_CHECKS
    const idleChecks = this.#idleChecks - since
    if (idleChecks >= 0 && idleChecks < IDLE_COLLECTIONS) {
      this.#collect(now, { isIdle: true, drops })
      return
    }
    if (now - this.#collectedAt < ABOVE_TARGET_MILLIS) return
    if (heldBytes() > targetBytes) this.#collect(now, { isIdle: false, drops: false })
  }

  #wasIdle(now: number): boolean {
    const cpuMicros = this.#options.cpuMicros()
    const share = (cpuMicros - this.#cpuMicros) / 1000 / Math.max(1, now - this.#checkedAt)
    this.#checkedAt = now
    this.#cpuMicros = cpuMicros
    return share < IDLE_SHARE
  }

  #collect(
    now: number,
    { isIdle, drops }: { readonly isIdle: boolean; readonly drops: boolean },
  ): void {
    this.#collectedAt = now
    this.#collections += 1
    this.#options.trimRunners(drops)
    this.#options.collect(isIdle)
    // The time of the collection does not count as work of the server.
    this.#checkedAt = this.#options.system.monotonicMillis()
    this.#cpuMicros = this.#options.cpuMicros()
  }
}

/** The parts of a process that return memory, and those that measure it. */
export interface KeptParts {
  readonly pool: { pids(): readonly number[]; trim(withDocuments: boolean): void }
  readonly store: { trim(): void }
  /** Drops what is in memory of Releases that are not served. */
  readonly trimReleases: () => void
  readonly system: Pick<System, 'monotonicMillis'>
  readonly metrics: { addSource(read: () => MemoryMetrics): void }
}

interface MemoryMetrics {
  readonly memoryTargetBytes: number
  readonly memoryCollections: number
}

/** Starts to return memory that this process does not need. Returns the function that stops it. */
export function keepMemory(
  { processBytes: targetBytes }: MemoryPlan,
  { pool, store, trimReleases, system, metrics }: KeptParts,
): () => void {
  const keeper = new MemoryKeeper({
    targetBytes,
    system,
    heldBytes: () => [process.pid, ...pool.pids()].reduce((sum, pid) => sum + heldBytes(pid), 0),
    cpuMicros: () => {
      const { user, system } = process.cpuUsage()
      return user + system
    },
    collect: (isIdle) => Bun.gc(isIdle),
    trimRunners: (withDocuments) => pool.trim(withDocuments),
    dropCaches: () => {
      store.trim()
      trimReleases()
    },
  })
  metrics.addSource(() => ({
    memoryTargetBytes: targetBytes,
    memoryCollections: keeper.collections,
  }))
  return () => keeper.stop()
}

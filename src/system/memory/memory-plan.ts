/**
 * Divides the memory that the server aims at over its processes and their caches. It is the only
 * place with these sizes. Buffers for peers have settings of their own, with a default from here.
 */
const MIB = 1024 * 1024

/** @limit Server: least `SERVICE_MEMORY_TARGET` in MiB */
export const MEMORY_TARGET_MIB_MIN = 256
/** @limit Server: least `SERVICE_MEMORY_TARGET` in MiB for each of several processes */
export const PROCESS_TARGET_MIB_MIN = 128
/** The target where the setting is absent is half of the memory, and at most this. */
export const MEMORY_TARGET_MIB_DEFAULT = 1_024
export const MEMORY_TARGET_MIB_MAX = 1_048_576

/**
 * More commits are dropped, and a base replaces their increments.
 * @limit Backups: bytes of the commits that wait for the target, at most
 */
export const BACKUP_BYTES_MAX = 16 * MIB

/** The plan of one process with an engine. */
export interface MemoryPlan {
  /** Bytes that the process aims at, with its runners. */
  readonly processBytes: number
  /** Characters of the newest versions in memory; with their objects twice as many bytes. */
  readonly documentCharacters: number
  /** Characters of cached results of Queries with their read sets. */
  readonly resultCharacters: number
  /** Characters of cached results in plain JSON, with their tagged and compressed texts. */
  readonly plainCharacters: number
  /** Characters of parsed Queries, with the objects of their values. */
  readonly parsedCharacters: number
  /** Characters of the OpenAPI documents of Functions. */
  readonly describedCharacters: number
  /** Characters of documents as callers receive them, of one Release. */
  readonly encodedCharacters: number
  /** Characters of documents as one Release sees them, where that differs from what is stored. */
  readonly projectedCharacters: number
  /** Characters of documents that one runner keeps; as objects seven times as many bytes. */
  readonly runnerCharacters: number
  /** Characters of the keys of recent commits, which conflicts are found by. */
  readonly writeLogCharacters: number
  /** Bytes of the commits that no backup has; as lines of an increment twice as many. */
  readonly backupBytes: number
  /** Bytes of the code of Releases in memory. */
  readonly releaseBytes: number
  /** MiB of the page cache of the connection that reads a document file. */
  readonly pageCacheMib: number
  /** MiB of the page cache of the connection that writes it. */
  readonly writerCacheMib: number
  /** Runner processes of one Release, and of all Releases, for Queries and Mutations. */
  readonly runners: number
  readonly runnersOfAll: number
  /** Runner processes of all Releases for Actions. */
  readonly actionRunnersOfAll: number
}

export interface PlanOptions {
  readonly targetMib: number
  /** CPUs of the machine. */
  readonly cpus: number
  /**
   * Processes with an engine of their own: the main process and the application processes. Each
   * has caches and runners.
   */
  readonly processes?: number
}

/** Memory of one runner process that the number of runners is bounded by. */
const RUNNER_BYTES = 64 * MIB
/** Least memory for peers: the largest response must fit into a quarter of it. */
const PEER_MIB_MIN = 128

/** Returns the number of processes with an engine for `SERVICE_APPLICATION_PROCESSES`. */
export function engineProcesses(applicationProcesses: number): number {
  return applicationProcesses === 1 ? 1 : applicationProcesses + 1
}

/** Returns the plan of each process. The sums of all processes keep to the target. */
export function divideMemory({ targetMib, cpus, processes = 1 }: PlanOptions): MemoryPlan {
  const each = Math.floor((targetMib * MIB) / processes)
  const share = (parts: number): number => Math.floor(each / parts)
  const most = Math.max(2, share(RUNNER_BYTES))
  const runners = Math.min(cpus, Math.floor(most / 2))
  return {
    processBytes: each,
    documentCharacters: share(32),
    resultCharacters: share(64),
    plainCharacters: share(64),
    parsedCharacters: share(64),
    describedCharacters: share(64),
    encodedCharacters: share(32),
    projectedCharacters: share(128),
    runnerCharacters: share(256),
    writeLogCharacters: share(32),
    backupBytes: Math.min(BACKUP_BYTES_MAX, share(64)),
    releaseBytes: share(32),
    pageCacheMib: Math.max(1, Math.floor(share(128) / MIB)),
    writerCacheMib: Math.max(1, Math.floor(share(64) / MIB)),
    runners,
    runnersOfAll: Math.min(4 * runners + 4, most),
    actionRunnersOfAll: Math.min(2 * runners + 2, most),
  }
}

/** Returns the default of the settings that bound what peers make the server hold. */
export function defaultPeerMib(targetMib: number): number {
  return Math.max(PEER_MIB_MIN, Math.floor(targetMib / 4))
}

/** Returns the least target for a number of processes with an engine. */
export function leastTargetMib(processes: number): number {
  return Math.max(MEMORY_TARGET_MIB_MIN, processes * PROCESS_TARGET_MIB_MIN)
}

/** Returns the default target for a machine or container with as much memory. */
export function defaultTargetMib(memoryBytes: number, processes = 1): number {
  const half = Math.floor(memoryBytes / 2 / MIB)
  return Math.max(leastTargetMib(processes), Math.min(MEMORY_TARGET_MIB_DEFAULT, half))
}

/** The plan of the default target, for processes that no setting reaches, such as tests. */
export const DEFAULT_PLAN = divideMemory({
  targetMib: MEMORY_TARGET_MIB_DEFAULT,
  cpus: navigator.hardwareConcurrency,
})

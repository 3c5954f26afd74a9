/**
 * A lock file between processes. It appears with its whole content (a link, not a create followed
 * by a write), which identifies the holder. The file of a dead holder is removed under a claim that
 * carries the nonce of that file, so a slow process never removes the lock of a later holder.
 */
import { closeSync, fstatSync, openSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import process from 'node:process'
import { Fault } from '../../errors/fault.ts'
import { isProcessRunning } from '../../system/processes.ts'
import type { System } from '../../system/system.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import { createFile, errorCode, withPath } from '../files.ts'
import { pause } from '../pauses.ts'

/** Exceeds the time of any holder, each of which has a shorter deadline. */
export const LOCK_WAIT_MS_MAX = 45_000
/** Age of the lock of a holder in another container or host, which no signal can reach. */
const FOREIGN_AGE_MS_MAX = 60_000
/** Age of a lock whose process ID may have been reused; only Linux can tell. */
const REUSED_AGE_MS_MAX = 600_000
const POLL_MS = 25

interface Owner {
  readonly nonce: string
  /** The boot and process namespace, or host, in which `pid` is unique. */
  readonly pidNamespace: string
  readonly pid: number
  /** Start of the process in clock ticks since boot; null if the platform does not report it. */
  readonly started: string | null
}

export interface LockFile {
  readonly nonce: string
  /** Null for content that this client did not write. */
  readonly owner: Owner | null
  readonly modifiedMillis: number
}

export interface LockWait {
  readonly waitMsMax: number
  /** The failure when another process holds the lock for longer. */
  readonly failure: (path: string) => Fault
}

const DEFAULT_WAIT: LockWait = {
  waitMsMax: LOCK_WAIT_MS_MAX,
  failure: (path) => new Fault('CLIENT_FILE_FAILED', { detail: `Another process holds ${path}.` }),
}

/**
 * Runs `work` while holding the lock. Throws the failure of `wait`, which is CLIENT_FILE_FAILED by
 * default.
 */
export async function withLock<T>(
  path: string,
  system: System,
  signal: AbortSignal,
  work: () => Promise<T>,
  wait: LockWait = DEFAULT_WAIT,
): Promise<T> {
  const nonce = await acquire(path, { system, signal, wait })
  try {
    return await work()
  } finally {
    try {
      removeIfNonce(path, nonce)
    } catch {
      // The work is done. The next process sees that this one has ended.
    }
  }
}

interface Acquisition {
  readonly system: System
  readonly signal: AbortSignal
  readonly wait: LockWait
}

async function acquire(path: string, { system, signal, wait }: Acquisition): Promise<string> {
  const { nonce, content } = ownContent(system)
  const since = system.monotonicMillis()
  for (;;) {
    if (createFile(path, content, 0o600)) return nonce
    const seen = inspect(path)
    if (seen !== null && isDead(seen, system)) removeDead(path, seen, system)
    else if (system.monotonicMillis() - since > wait.waitMsMax) throw wait.failure(path)
    else await pause(POLL_MS + (system.randomBytes(1)[0]! % POLL_MS), signal)
  }
}

/**
 * Removes the lock of a dead holder. Only the process that creates the claim on its nonce does so,
 * and only while the file has that nonce: other holders may have come and gone since `seen`.
 */
export function removeDead(path: string, seen: LockFile, system: System): void {
  const claim = `${path}.${seen.nonce}`
  const { nonce, content } = ownContent(system)
  if (createFile(claim, content, 0o600)) {
    removeIfNonce(path, seen.nonce)
    removeIfNonce(claim, nonce)
    return
  }
  const other = inspect(claim)
  if (other !== null && isDead(other, system)) removeDead(claim, other, system)
}

function removeIfNonce(path: string, nonce: string): void {
  if (inspect(path)?.nonce === nonce) withPath(path, () => rmSync(path, { force: true }))
}

export function inspect(path: string): LockFile | null {
  return withPath(path, () => {
    let file: number
    try {
      file = openSync(path, 'r')
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw error
    }
    try {
      const { ino, mtimeMs } = fstatSync(file)
      const owner = parseOwner(readFileSync(file, 'utf8'))
      const nonce = owner?.nonce ?? `${ino}-${Math.trunc(mtimeMs)}`
      return { nonce, owner, modifiedMillis: mtimeMs }
    } finally {
      closeSync(file)
    }
  })
}

const NONCE = /^[A-Za-z0-9_-]{16}$/

function parseOwner(text: string): Owner | null {
  try {
    const owner = JSON.parse(text) as Owner
    return NONCE.test(owner.nonce) && Number.isSafeInteger(owner.pid) && owner.pid > 0
      ? owner
      : null
  } catch {
    return null
  }
}

function isDead({ owner, modifiedMillis }: LockFile, system: System): boolean {
  const age = system.nowMillis() - modifiedMillis
  if (owner === null || owner.pidNamespace !== pidNamespace()) return age > FOREIGN_AGE_MS_MAX
  if (!isProcessRunning(owner.pid)) return true
  if (owner.started !== null) return startOf(owner.pid) !== owner.started
  return age > REUSED_AGE_MS_MAX
}

function ownContent(system: System): { nonce: string; content: string } {
  const nonce = encodeBase64Url(system.randomBytes(12))
  const owner = {
    nonce,
    pidNamespace: pidNamespace(),
    pid: process.pid,
    started: startOf(process.pid),
  }
  return { nonce, content: canonicalJson(owner) }
}

/** Identifies the boot and the process namespace, in which process IDs are unique. */
function pidNamespace(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Field 2 is a name that may contain spaces and parentheses; the start time is field 22.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

/**
 * One lock file among processes. It appears with its whole content (a link, not a create followed
 * by a write) and tells who holds it. A dead holder's file is removed under a claim that carries
 * the nonce of exactly that file, so a slow process can never remove the lock of a later holder.
 */
import { closeSync, fstatSync, openSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import process from 'node:process'
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import { canonicalJson } from '../value/canonical-json.ts'
import { createFile, errorCode, withPath } from './files.ts'
import { pause } from './pauses.ts'

/** Longer than any holder works: each has a deadline of its own below it. */
export const LOCK_WAIT_MS_MAX = 45_000
/** A holder elsewhere, in another container or on another host, whom no signal can reach. */
const FOREIGN_AGE_MS_MAX = 60_000
/** A process with the holder's number lives, but only Linux tells whether it is the same one. */
const REUSED_AGE_MS_MAX = 600_000
const POLL_MS = 25

interface Owner {
  readonly nonce: string
  /** Where `pid` means something. */
  readonly place: string
  readonly pid: number
  /** Start of the process in clock ticks since boot; null where the platform does not tell. */
  readonly started: string | null
}

export interface Seen {
  readonly nonce: string
  /** Null for content that is not ours. */
  readonly owner: Owner | null
  readonly modifiedMillis: number
}

/** Runs `work` while holding `path`. Faults: CLIENT_FILE_FAILED after LOCK_WAIT_MS_MAX. */
export async function withLock<T>(
  path: string,
  system: System,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const nonce = await acquire(path, system, signal)
  try {
    return await work()
  } finally {
    try {
      removeIfNonce(path, nonce)
    } catch {
      // The work is done; whoever comes next sees that this process is gone.
    }
  }
}

async function acquire(path: string, system: System, signal: AbortSignal): Promise<string> {
  const { nonce, content } = ownContent(system)
  const since = system.monotonicMillis()
  for (;;) {
    if (createFile(path, content, 0o600)) return nonce
    const seen = inspect(path)
    if (seen !== null && isDead(seen, system)) removeDead(path, seen, system)
    else if (system.monotonicMillis() - since > LOCK_WAIT_MS_MAX) {
      throw new Fault('CLIENT_FILE_FAILED', { detail: `Another process holds ${path}.` })
    } else await pause(POLL_MS + (system.randomBytes(1)[0]! % POLL_MS), signal)
  }
}

/**
 * Only the maker of the claim on this nonce may remove the file, and only while it is that one:
 * between `seen` and now others may have taken the lock over and given it back many times.
 */
export function removeDead(path: string, seen: Seen, system: System): void {
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

export function inspect(path: string): Seen | null {
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

function isDead({ owner, modifiedMillis }: Seen, system: System): boolean {
  const age = system.nowMillis() - modifiedMillis
  if (owner === null || owner.place !== place()) return age > FOREIGN_AGE_MS_MAX
  if (!processExists(owner.pid)) return true
  if (owner.started !== null) return startOf(owner.pid) !== owner.started
  return age > REUSED_AGE_MS_MAX
}

function ownContent(system: System): { nonce: string; content: string } {
  const nonce = encodeBase64Url(system.randomBytes(12))
  const owner = { nonce, place: place(), pid: process.pid, started: startOf(process.pid) }
  return { nonce, content: canonicalJson(owner) }
}

/** A process number means something within one boot and one process namespace. */
function place(): string {
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
    // The name in field 2 may hold spaces and parentheses; the start is field 22.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

function processExists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

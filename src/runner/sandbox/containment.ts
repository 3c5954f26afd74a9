/**
 * The two steps into the sandbox. The first, on Linux, restricts the calling thread and executes
 * the same program again, so that every later thread inherits the restriction; the second drops
 * root and filters system calls. No code of a Workspace is loaded before both.
 */
import { closeSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { cText, cVector, libc } from '../kernel/libc.ts'
import { FRAMES_DESCRIPTOR } from '../protocol/frames.ts'
import { type Containment, GROWTH_BYTES_MAX } from '../protocol/messages.ts'
import { landlockVersion, restrictFiles } from './landlock.ts'
import {
  closeOnExec,
  dieWithParent,
  forbidNewPrivileges,
  giveWay,
  keepOnExec,
  keepOnlyWhatChangesUser,
  leaveRoot,
  limitData,
  limitResources,
} from './privileges.ts'
import { CONTAINED_ENVIRONMENT } from './process-environment.ts'
import { enterSeatbelt } from './seatbelt.ts'
import { restrictSystemCalls } from './seccomp.ts'

/** A link to this program, which works even if the file was replaced or cannot be reached. */
const SELF = '/proc/self/exe'
/** Those below are the standard ones, the progress record and the socket of the frames. */
const FIRST_FOREIGN_DESCRIPTOR = FRAMES_DESCRIPTOR + 1
/** The memory figures of this process, opened while that is still allowed. */
const MEMORY_DESCRIPTOR = FIRST_FOREIGN_DESCRIPTOR
/** The C library reads the bounds of its stack there; the rule holds while this keeps the inode. */
const MAPS = '/proc/self/maps'
const MAPS_DESCRIPTOR = FIRST_FOREIGN_DESCRIPTOR + 1
const STATUS_BYTES_MAX = 16_384

export interface SelfCommand {
  /** Arguments behind the program's name that lead to `runRunner`. */
  readonly arguments: readonly string[]
  /** Directories that the second start reads its own source from; empty when compiled. */
  readonly sourceTrees: readonly string[]
}

/**
 * Linux: restricts and executes `command` with the version of Landlock in force appended. Returns
 * only where that failed.
 */
export function restrictAndRestart(command: SelfCommand): void {
  forbidNewPrivileges()
  closeOnExec(FIRST_FOREIGN_DESCRIPTOR)
  keepOnExec(FRAMES_DESCRIPTOR)
  inherit(MEMORY_DESCRIPTOR, '/proc/self/status')
  inherit(MAPS_DESCRIPTOR, MAPS)
  limitResources()
  dieFirst()
  giveWay()
  const version = landlockVersion()
  const rules = { files: [SELF, MAPS, ...loadedLibraries()], trees: command.sourceTrees }
  const inForce = version > 0 && restrictFiles(version, rules) ? version : 0
  keepOnlyWhatChangesUser()
  const argv = cVector(['svc-runner', ...command.arguments, String(inForce)])
  const environment = Object.entries(CONTAINED_ENVIRONMENT)
  const envp = cVector(environment.map(([name, value]) => `${name}=${value}`))
  libc().execve(cText(SELF), argv, envp)
}

/** Performs the second step. Returns the layers that are in force afterwards. */
export function lockDown(landlock: number): Containment {
  switch (process.platform) {
    case 'linux': {
      limitGrowth()
      const unprivileged = leaveRoot()
      dieWithParent()
      return { landlock, seccomp: restrictSystemCalls(), unprivileged, seatbelt: false }
    }
    case 'darwin':
      return {
        landlock: 0,
        seccomp: false,
        unprivileged: process.getuid?.() !== 0,
        seatbelt: enterSeatbelt(),
      }
    default:
      return { landlock: 0, seccomp: false, unprivileged: false, seatbelt: false }
  }
}

/** Makes the kernel kill runners before the server and its database when memory runs out. */
function dieFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Some containers mount /proc so that it can only be read; the server's watch remains.
  }
}

/** Opens a file as a descriptor that stays open across exec. */
function inherit(as: number, path: string): void {
  libc().dup2(openSync(path, 'r'), as)
}

function limitGrowth(): void {
  const text = Buffer.alloc(STATUS_BYTES_MAX)
  const length = readSync(MEMORY_DESCRIPTOR, text, 0, text.length, 0)
  const [, kibibytes] = /^VmData:\s+(\d+) kB$/m.exec(text.toString('latin1', 0, length)) ?? []
  if (kibibytes !== undefined) limitData(Number(kibibytes) * 1024 + GROWTH_BYTES_MAX)
  closeSync(MEMORY_DESCRIPTOR)
  closeSync(MAPS_DESCRIPTOR)
}

/** Returns what the second start opens: the cache of the loader, and each library in use. */
function loadedLibraries(): string[] {
  const paths = new Set(['/etc/ld.so.cache'])
  for (const line of readFileSync(MAPS, 'utf8').split('\n')) {
    const path = line.slice(line.indexOf('/'))
    if (line.includes('/') && path.includes('.so')) paths.add(path)
  }
  return [...paths]
}

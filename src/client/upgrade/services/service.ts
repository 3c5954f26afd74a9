/** The interface to the manager that starts and stops the server of an installation. */
import { closeSync, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { Fault } from '../../../errors/fault.ts'
import type { ServiceVariables } from '../environment-files.ts'
import type { Ended, Run, User } from '../programs.ts'

/** Longer than a server may take to stop and to start. */
export const RESTART_MS = 240_000

export interface Service {
  readonly manager: 'systemd' | 'launchd' | 'OpenRC'
  readonly name: string
  /** The user of the server; null for the one of this process. */
  readonly user: User | null
  /** The settings that the manager gives the server. */
  readonly variables: ServiceVariables
  isRunning(): Promise<boolean>
  /** Returns whether the manager has given up to start it. */
  hasFailed(): Promise<boolean>
  /** These throw CLIENT_UPGRADE_NOT_READY if the manager fails. */
  start(): Promise<void>
  stop(): Promise<void>
  restart(): Promise<void>
  /** Returns the last lines of its log; empty where they are unknown. */
  log(): Promise<string>
}

export interface ServiceSearch {
  readonly run: Run
  /** The file that the service must start; other services are left alone. */
  readonly executable: string
  /** Number of the user of this process; null if users have none. */
  readonly userId: number | null
}

export const SERVICE_NAME = 'svc-server'

export function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false
  }
}

/** Runs a command of a manager. Throws CLIENT_UPGRADE_NOT_READY. */
export async function manage(run: Run, command: readonly [string, ...string[]]): Promise<Ended> {
  const ended = await run(command, { timeoutMs: RESTART_MS })
  if (ended.status === 0) return ended
  const reason = ended.stderr.trim().split('\n')[0] || 'no reason'
  throw new Fault('CLIENT_UPGRADE_NOT_READY', { detail: `\`${command.join(' ')}\`: ${reason}.` })
}

/**
 * Returns the numbers of a user, or null if it is the one of this process. Throws
 * CLIENT_UPGRADE_IMPOSSIBLE where only root can act as that user.
 */
export async function userOf({ run, userId }: ServiceSearch, name: string): Promise<User | null> {
  const numbers = [await run(['id', '-u', name]), await run(['id', '-g', name])]
  const [uid, gid] = numbers.map(({ stdout }) => Number.parseInt(stdout, 10))
  if (uid === undefined || gid === undefined || !Number.isInteger(uid) || !Number.isInteger(gid)) {
    const detail = `The user ${name} of the service does not exist. Nothing was replaced.`
    throw new Fault('CLIENT_UPGRADE_IMPOSSIBLE', { detail })
  }
  return uid === userId ? null : { uid, gid }
}

const LOG_LINES = 5
const LOG_BYTES = 4 * 1024

/** Returns the last lines of a file of log. */
export function tailOf(path: string): string {
  try {
    const file = openSync(path, 'r')
    try {
      const block = Buffer.alloc(LOG_BYTES)
      const at = Math.max(0, fstatSync(file).size - LOG_BYTES)
      const length = readSync(file, block, 0, LOG_BYTES, at)
      return lastLines(block.toString('utf8', 0, length))
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}

export function lastLines(text: string): string {
  return text.slice(-LOG_BYTES).trimEnd().split('\n').slice(-LOG_LINES).join('\n')
}

/**
 * The user that a connection from this machine belongs to. Linux lists the owner of each socket, so
 * that the programs of another user are rejected even with a start URL that they have seen.
 */
import { readFileSync } from 'node:fs'

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
/** 127.0.0.1 as the tables have it, and as an IPv4 address of an IPv6 socket. */
const LOOPBACK = ['0100007F', '0000000000000000FFFF00000100007F']

export type ReadTable = (path: string) => string | null

/**
 * Returns the ID of the user whose socket at `peerPort` is connected to `port`; null if the
 * system does not tell.
 */
export function ownerOfPeer(
  peerPort: number,
  port: number,
  read: ReadTable = readTable,
): number | null {
  const [from, to] = [hexPort(peerPort), hexPort(port)]
  for (const line of TABLES.flatMap((path) => (read(path) ?? '').split('\n').slice(1))) {
    const [, local, remote, , , , , uid] = line.trim().split(/\s+/)
    const isPeer = LOOPBACK.some((address) => local === `${address}:${from}`)
    const isHere = LOOPBACK.some((address) => remote === `${address}:${to}`)
    if (isPeer && isHere && /^[0-9]+$/.test(uid ?? '')) return Number(uid)
  }
  return null
}

/** Returns whether a program of this user may connect; the administrator may do everything. */
export function isOwnPeer(owner: number | null, self: number | undefined): boolean {
  return owner === null || self === undefined || owner === self || owner === 0
}

function hexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}

function readTable(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

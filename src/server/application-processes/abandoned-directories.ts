/**
 * Removes the directories of servers that were killed: each has the memory and the socket that the
 * processes of one server share, in the directory of temporary files.
 */
import { lstatSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

/** Names of the directories begin with it. */
export const DIRECTORY_PREFIX = 'svc-server-'
/** The socket in each directory, on which a main process listens for as long as it runs. */
export const SOCKET = 'origin'
/** Age from which on a directory without a socket belongs to no server that starts: a day. */
const STARTING_MILLIS_MAX = 24 * 3_600_000

/** Removes those of this user below `parent` on whose socket nothing listens. Never rejects. */
export async function removeAbandoned(parent: string, nowMillis: number): Promise<void> {
  for (const name of namesIn(parent)) {
    const directory = join(parent, name)
    try {
      const found = lstatSync(directory)
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue
      const isAbandoned = hasSocket(directory)
        ? !(await isListening(join(directory, SOCKET)))
        : nowMillis - found.mtimeMs > STARTING_MILLIS_MAX
      if (isAbandoned) rmSync(directory, { recursive: true, force: true })
    } catch {
      // Another server removed it at the same time, or it cannot be read.
    }
  }
}

function namesIn(parent: string): string[] {
  try {
    return readdirSync(parent).filter((name) => name.startsWith(DIRECTORY_PREFIX))
  } catch {
    return []
  }
}

function hasSocket(directory: string): boolean {
  return statSync(join(directory, SOCKET), { throwIfNoEntry: false })?.isSocket() === true
}

/** The kernel accepts for a process that runs, even for one that has hung. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'))
  })
}

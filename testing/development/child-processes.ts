/** The processes that this one has started and that have not ended, as Linux lists them. */
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Returns a list of the IDs of processes that were started after this call. Tests of other files
 * may have left one, such as the service of the bundler, in the process that they share.
 */
export function listNewChildren(): () => string[] {
  const before = new Set(childProcesses())
  return () => childProcesses().filter((id) => !before.has(id))
}

function childProcesses(): string[] {
  return readdirSync('/proc/self/task').flatMap((task) => {
    try {
      const text = readFileSync(`/proc/self/task/${task}/children`, 'utf8')
      return text.split(' ').filter((id) => id !== '')
    } catch {
      // The thread has ended meanwhile.
      return []
    }
  })
}

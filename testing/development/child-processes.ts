/** The processes that this one has started and that have not ended, as Linux lists them. */
import { readdirSync, readFileSync } from 'node:fs'

/** Returns their IDs. */
export function childProcesses(): string[] {
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

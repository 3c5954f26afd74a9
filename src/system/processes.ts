/** The processes of this machine. */

/** Returns whether a process of any user has this ID, which may be reused after a process ends. */
export function isProcessRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

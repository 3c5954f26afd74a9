/** The processes of this machine. */

/** Tells whether a process has this ID, of any user; a process that has ended may be replaced. */
export function isProcessRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

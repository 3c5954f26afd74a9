/** Starts the browser of the desktop. A machine without one is no failure. */
import { spawn } from 'node:child_process'

/** A launcher that fails does so at once; one that is still there then has handed the page over. */
const LAUNCH_MS = 3_000

/**
 * False where no browser could be started; never rejects. `url` is HTTP or HTTPS, so that no
 * launcher takes it for an option or a file.
 */
export function openBrowser(platform: string, url: string): Promise<boolean> {
  const [program, ...rest] = launcher(platform)
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), LAUNCH_MS)
    timer.unref()
    const settle = (opened: boolean): void => {
      clearTimeout(timer)
      resolve(opened)
    }
    try {
      const child = spawn(program, [...rest, url], { detached: true, stdio: 'ignore' })
      child.once('error', () => settle(false))
      child.once('exit', (code) => settle(code === 0))
      child.unref()
    } catch {
      settle(false)
    }
  })
}

/** Never a shell: it would read the `&` between parameters as its own. */
function launcher(platform: string): readonly [string, ...string[]] {
  switch (platform) {
    case 'win32':
      return ['rundll32', 'url.dll,FileProtocolHandler']
    case 'darwin':
      return ['open']
    default:
      return ['xdg-open']
  }
}

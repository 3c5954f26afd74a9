/** Starts the browser of the desktop. */
import { spawn } from 'node:child_process'

/** Milliseconds after which a launcher that still runs has opened the page. */
const LAUNCH_MS = 3_000

/**
 * Returns false if no browser could be started; never rejects. `url` is HTTP or HTTPS, so that no
 * launcher mistakes it for an option or a file.
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

/** Returns the program without a shell, which would interpret the `&` between parameters. */
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

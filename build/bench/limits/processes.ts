/** Limits that are servers: each is a process of its own, on the runtime of this script. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

export interface LimitServer {
  readonly port: number
  stop(): void
}

const ROOT = join(import.meta.dirname, '../../..')
const SCRIPTS = {
  bare: 'build/bench/limits/bare.ts',
  bareSelect: 'build/bench/limits/bare-select.ts',
  transfers: 'build/bench/limits/transfers.ts',
}

/** The script prints its port once it listens. */
export async function limitServer(
  script: keyof typeof SCRIPTS,
  environment: Readonly<Record<string, string>>,
): Promise<LimitServer> {
  const child = spawn(process.execPath, [join(ROOT, SCRIPTS[script])], {
    env: { ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (status) => reject(new Error(`${script} ended with ${status}`)))
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  return { port, stop: () => void child.kill() }
}

/** Starts baselines that are servers, each in a process of its own on this runtime. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'

export interface BaselineServer {
  readonly port: number
  readonly pid: number
  stop(): void
}

const ROOT = join(import.meta.dirname, '../..')
const SCRIPTS = {
  bare: 'bench/baselines/bare.ts',
  broadcast: 'bench/baselines/broadcast.ts',
  bareSelect: 'bench/baselines/bare-select.ts',
  files: 'bench/baselines/files.ts',
  otlpReceiver: 'bench/baselines/otlp-receiver.ts',
  transfers: 'bench/baselines/transfers.ts',
  transfersSqlite: 'bench/baselines/transfers-sqlite.ts',
}

/** Starts a script and waits until it prints the port that it listens on. */
export async function baselineServer(
  script: keyof typeof SCRIPTS,
  environment: Readonly<Record<string, string>>,
): Promise<BaselineServer> {
  const child = spawn(process.execPath, [join(ROOT, SCRIPTS[script])], {
    env: { ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (status) => reject(new Error(`${script} ended with ${status}`)))
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  return { port, pid: child.pid!, stop: () => void child.kill() }
}

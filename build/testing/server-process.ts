/** The compiled svc-server as a process, watched through what it logs: one JSON object a line. */
import { type Supervised, superviseProcess } from './supervisor.ts'

export interface ServerProcess {
  /** Origin of the Management listener. */
  readonly management: string
  /** Origin of the application listener; null where none is configured. */
  readonly application: string | null
  /** Every line so far, standard output and error together. */
  readonly lines: readonly string[]
  /** Exit status, when it has ended. */
  readonly ended: Promise<number>
  /** Sends TERM and waits. */
  stop(): Promise<number>
  kill(): void
}

export interface ServerOptions {
  readonly executable: string
  readonly environment: Readonly<Record<string, string>>
  readonly directory: string
  readonly onLine?: (line: string) => void
}

const START_TIMEOUT_MS = 30_000

/** Resolves once every configured listener is open; rejects with its last words otherwise. */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const supervised = superviseProcess([options.executable, 'serve'], {
    signal: 'TERM',
    directory: options.directory,
    environment: options.environment,
  })
  const surfaces = ['management']
  if (options.environment.SERVICE_APPLICATION_LISTEN !== undefined) surfaces.push('application')
  const lines: string[] = []
  const origins = new Map<string, string>()
  await new Promise<void>((resolve, reject) => {
    const refuse = (reason: string): void => {
      clearTimeout(timer)
      reject(new Error(`svc-server ${reason}:\n${lines.slice(-20).join('\n')}`))
    }
    const timer = setTimeout(() => {
      supervised.kill()
      refuse(`opened no listener within ${START_TIMEOUT_MS} ms`)
    }, START_TIMEOUT_MS)
    void supervised.ended.then((status) => refuse(`ended with status ${status}`))
    readLines(supervised, (line) => {
      lines.push(line)
      options.onLine?.(line)
      const listening = parseListening(line)
      if (listening === null) return
      origins.set(listening.surface, `http://${listening.address}`)
      if (!surfaces.every((surface) => origins.has(surface))) return
      clearTimeout(timer)
      resolve()
    })
  })
  return {
    management: origins.get('management') ?? '',
    application: origins.get('application') ?? null,
    lines,
    ended: supervised.ended,
    stop: supervised.stop,
    kill: supervised.kill,
  }
}

function readLines(supervised: Supervised, onLine: (line: string) => void): void {
  for (const stream of [supervised.stdout, supervised.stderr]) {
    let rest = ''
    stream.on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) onLine(part)
    })
    stream.on('end', () => {
      if (rest !== '') onLine(rest)
    })
  }
}

function parseListening(line: string): { surface: string; address: string } | null {
  if (!line.startsWith('{')) return null
  try {
    const record = JSON.parse(line)
    return record.event === 'server.listening' ? record : null
  } catch {
    return null
  }
}

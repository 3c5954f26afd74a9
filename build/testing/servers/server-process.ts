/** The compiled svc-server as a process, watched through what it logs: one JSON object a line. */
import { type Supervised, superviseProcess } from './supervisor.ts'

export interface ServerProcess {
  /** Origin of the Management listener. */
  readonly management: string
  /** Origin of the application listener; null where none is configured. */
  readonly application: string | null
  /** Every line so far, standard output and error together; cut when somebody asks. */
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

/** Shorter than a test may take, so that its failure shows what the server said. */
const START_TIMEOUT_MS = 60_000

/** Resolves once it serves; rejects with its last words otherwise. */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const supervised = superviseProcess([options.executable, 'serve'], {
    signal: 'TERM',
    directory: options.directory,
    environment: options.environment,
  })
  const printed = new Printed(supervised)
  const origins = new Map<string, string>()
  await new Promise<void>((resolve, reject) => {
    const refuse = (reason: string): void => {
      clearTimeout(timer)
      reject(new Error(`svc-server ${reason}:\n${printed.lines.slice(-20).join('\n')}`))
    }
    const timer = setTimeout(() => {
      supervised.kill()
      refuse(`was not ready within ${START_TIMEOUT_MS} ms`)
    }, START_TIMEOUT_MS)
    void supervised.ended.then((status) => refuse(`ended with status ${status}`))
    printed.onLine = (line) => {
      options.onLine?.(line)
      const record = parseRecord(line)
      if (record?.event === 'server.listening') {
        origins.set(record.surface ?? '', `http://${record.address}`)
      }
      if (record?.event !== 'server.ready') return
      clearTimeout(timer)
      printed.onLine = options.onLine ?? null
      resolve()
    }
  })
  return {
    management: origins.get('management') ?? '',
    application: origins.get('application') ?? null,
    get lines() {
      return printed.lines
    },
    ended: supervised.ended,
    stop: supervised.stop,
    kill: supervised.kill,
  }
}

/**
 * What a process prints. Nobody listens to a server that runs, so it is kept as it comes: cutting
 * each line would take from the machine what a measured server could use.
 */
class Printed {
  /** Gets every line from the moment on that it is set. */
  onLine: ((line: string) => void) | null = null
  readonly #lines: string[] = []
  /** Not cut yet, in the order in which it came. */
  readonly #chunks: { readonly from: 0 | 1; readonly text: string }[] = []
  /** Of each stream, what follows its last line end. */
  readonly #rests: [string, string] = ['', '']

  constructor({ stdout, stderr }: Supervised) {
    for (const [from, stream] of [
      [0, stdout],
      [1, stderr],
    ] as const) {
      stream.on('data', (text: string) => this.#add(from, text))
      stream.on('end', () => {
        this.#cut()
        if (this.#rests[from] !== '') this.#add(from, '\n')
      })
    }
  }

  get lines(): readonly string[] {
    this.#cut()
    return this.#lines
  }

  #add(from: 0 | 1, text: string): void {
    this.#chunks.push({ from, text })
    if (this.onLine !== null) this.#cut()
  }

  #cut(): void {
    for (const { from, text } of this.#chunks.splice(0)) {
      const parts = (this.#rests[from] + text).split('\n')
      this.#rests[from] = parts.pop() ?? ''
      for (const part of parts) {
        this.#lines.push(part)
        this.onLine?.(part)
      }
    }
  }
}

interface LogRecord {
  readonly event: string
  readonly surface?: string
  readonly address?: string
}

function parseRecord(line: string): LogRecord | null {
  if (!line.startsWith('{')) return null
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

/** Runs the compiled svc-server and watches its log: one JSON object per line. */
import { type Supervised, superviseProcess } from './supervisor.ts'

export interface ServerProcess {
  /** Origin of the Management listener. */
  readonly management: string
  /** Origin of the application listener; null if none is configured. */
  readonly application: string | null
  /** Every line so far, of standard output and error; the text is split when this is read. */
  readonly lines: readonly string[]
  /** Exit status; resolves when the process has ended. */
  readonly ended: Promise<number>
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<number>
  kill(): void
}

export interface ServerOptions {
  readonly executable: string
  /** Arguments after `serve`. */
  readonly args?: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly directory: string
  readonly onLine?: (line: string) => void
}

/**
 * Number of application processes of every server that a test starts with an application listener
 * and without a number of its own: `SVC_TEST_APPLICATION_PROCESSES=2 npm run test:e2e`.
 */
const TEST_PROCESSES = process.env.SVC_TEST_APPLICATION_PROCESSES

/** Processes that answer the application address of such a server: 1 is the main process. */
export const ANSWERING_PROCESSES = Number(TEST_PROCESSES ?? 1)

/** Time limit of a start: less than that of a test, so that a failure shows the output. */
const START_TIMEOUT_MS = 120_000

/** Resolves once the server is ready; otherwise rejects with the last lines. */
export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const supervised = superviseProcess([options.executable, 'serve', ...(options.args ?? [])], {
    signal: 'TERM',
    directory: options.directory,
    environment: withProcesses(options.environment),
  })
  const printed = new Printed(supervised)
  const origins = new Map<string, string>()
  await new Promise<void>((resolve, reject) => {
    const fail = (reason: string): void => {
      clearTimeout(timer)
      reject(new Error(`svc-server ${reason}:\n${printed.lines.slice(-20).join('\n')}`))
    }
    const timer = setTimeout(() => {
      supervised.kill()
      fail(`was not ready within ${START_TIMEOUT_MS} ms`)
    }, START_TIMEOUT_MS)
    void supervised.ended.then((status) => fail(`ended with status ${status}`))
    printed.onLine = (line) => {
      options.onLine?.(line)
      const record = parseRecord(line)
      if (record?.event === 'server.listening') {
        const scheme = record.tls === true ? 'https' : 'http'
        origins.set(record.surface ?? '', `${scheme}://${record.address}`)
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

function withProcesses(environment: ServerOptions['environment']): ServerOptions['environment'] {
  if (!TEST_PROCESSES || environment.SERVICE_APPLICATION_LISTEN === undefined) return environment
  return { SERVICE_APPLICATION_PROCESSES: TEST_PROCESSES, ...environment }
}

/**
 * The output of a process. It is stored in chunks as it arrives and split into lines on demand,
 * since the CPU time for that would be missing from a server that is being measured.
 */
class Printed {
  /** Receives every line that arrives after it was set. */
  onLine: ((line: string) => void) | null = null
  readonly #lines: string[] = []
  /** Text that is not split yet, in the order of its arrival. */
  readonly #chunks: { readonly from: 0 | 1; readonly text: string }[] = []
  /** The text of each stream after its last line end. */
  readonly #rests: [string, string] = ['', '']

  constructor({ stdout, stderr }: Supervised) {
    for (const [from, stream] of [
      [0, stdout],
      [1, stderr],
    ] as const) {
      stream.on('data', (text: string) => this.#add(from, text))
      stream.on('end', () => {
        this.#split()
        if (this.#rests[from] !== '') this.#add(from, '\n')
      })
    }
  }

  get lines(): readonly string[] {
    this.#split()
    return this.#lines
  }

  #add(from: 0 | 1, text: string): void {
    this.#chunks.push({ from, text })
    if (this.onLine !== null) this.#split()
  }

  #split(): void {
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
  readonly tls?: boolean
}

function parseRecord(line: string): LogRecord | null {
  if (!line.startsWith('{')) return null
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

/** The compiled `svc dev` as a process of its own, with the events that it reports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { argv } from '../argv.ts'
import { CLIENT } from '../harness.ts'

export interface Event {
  readonly event: string
  readonly [member: string]: unknown
}

export class DevelopmentProcess {
  readonly events: Event[] = []
  /** Resolves with the exit code and all output except events. */
  readonly ended: Promise<{ readonly status: number | null; readonly output: string }>
  readonly #child: ChildProcess

  constructor(options: readonly string[], command: readonly string[] = [CLIENT]) {
    const [file = '', ...args] = argv`${command} dev ${options} --json`
    this.#child = spawn(file, args, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      if (line.startsWith('{"event":')) this.events.push(JSON.parse(line))
      else output += `${line}\n`
    })
    this.#child.stderr!.on('data', (text) => {
      output += text
    })
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (status) => resolve({ status, output }))
    })
  }

  get pid(): number {
    return this.#child.pid!
  }

  /**
   * Resolves with the first event of this name, and with this text, from `from` on. Throws if the
   * process ends.
   */
  async next(name: string, from = this.events.length, text = ''): Promise<Event> {
    const ended = this.ended.then(({ output }) => {
      throw new Error(`svc dev ended without the event ${name}: ${output}`)
    })
    ended.catch(() => undefined)
    for (;;) {
      const found = this.events
        .slice(from)
        .find((each) => each.event === name && JSON.stringify(each).includes(text))
      if (found !== undefined) return found
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 20))])
    }
  }

  /** Calls a Function without arguments. Resolves with its result, null for none, or the code. */
  async call(name: string, kind: 'query' | 'mutation', operationId?: string): Promise<unknown> {
    const { url, applicationKey } = await this.next('ready', 0)
    const response = await fetch(`${url}/v1/${kind}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': String(applicationKey) },
      body: JSON.stringify({
        version: 1,
        target: 'channel:dev',
        function: name,
        operationId,
        arguments: { type: 'object', value: [] },
      }),
    })
    const { result, error } = (await response.json()) as {
      readonly result?: { readonly value: unknown }
      readonly error?: { readonly code: string }
    }
    return error?.code ?? result?.value ?? null
  }

  /** Stops the process as Ctrl-C does. */
  async stop(): Promise<void> {
    this.#child.kill('SIGINT')
    await this.ended
  }
}

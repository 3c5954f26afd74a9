/** Reads the log of the Environment by pages and by a stream, across restarts of the server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Application, Json } from '../application.ts'
import { argv } from '../argv.ts'
import { call, type Reply } from '../harness.ts'
import type { SeenRecord } from './checker.ts'

interface LogLine extends SeenRecord {
  readonly atMicros: string
  readonly heartbeat?: boolean
}

const PAGE_RECORDS = 100
const RETRY_MS = 50

export class LogReader {
  readonly environmentId: string
  /** Path of the routes of the Environment. */
  readonly path: string
  readonly #app: Application
  readonly #paged: LogLine[] = []
  readonly #followed: LogLine[] = []
  readonly #stopping = new AbortController()
  readonly #running: Promise<unknown>

  private constructor(app: Application, path: string, environmentId: string, start: string) {
    this.#app = app
    this.path = path
    this.environmentId = environmentId
    this.#running = Promise.all([this.#readPages(start), this.#follow(start)])
  }

  /** Opens both readers at the oldest record. */
  static async open(app: Application): Promise<LogReader> {
    const text = readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8')
    const { projectId, environmentId } = JSON.parse(text)
    const path = `/v1/projects/${projectId}/environments/${environmentId}`
    const response = await fetch(`${app.server.management}${path}/logs/follow?since=0`, {
      headers: { authorization: `Bearer ${tokenOf(app)}` },
    })
    const reader = response.body!.getReader()
    const { value } = await reader.read()
    await reader.cancel()
    const { cursor } = JSON.parse(Buffer.from(value!).toString().split('\n')[0]!)
    return new LogReader(app, path, environmentId, cursor)
  }

  /** Sends a request as the operator. The status is 0 if the server does not respond. */
  async send(method: string, path: string, body?: Json): Promise<Pick<Reply, 'status' | 'body'>> {
    const options = { token: tokenOf(this.#app), ...(body !== undefined && { body }) }
    const { management } = this.#app.server
    try {
      const reply = await call(management, method, path, options)
      if (reply.status === 401) await this.#app.svc(argv`status`)
      return reply
    } catch {
      return { status: 0, body: null }
    }
  }

  /** Opens a stream of the newest records. */
  openStream(): Promise<Response> {
    return fetch(`${this.#app.server.management}${this.path}/logs/follow`, {
      headers: { authorization: `Bearer ${tokenOf(this.#app)}` },
    })
  }

  /** The time up to which both readers have read every record; null before the first one. */
  readUntilMicros(): string | null {
    const [page, line] = [this.#paged.at(-1), this.#followed.at(-1)]
    if (page === undefined || line === undefined) return null
    return BigInt(page.atMicros) < BigInt(line.atMicros) ? page.atMicros : line.atMicros
  }

  /** Resolves when both readers have seen a record with this message. */
  async untilSeen(message: string): Promise<void> {
    const isSeen = (records: readonly LogLine[]) => {
      return records.some((each) => each.message === message)
    }
    while (!isSeen(this.#paged) || !isSeen(this.#followed)) await delay(RETRY_MS)
  }

  /** Returns what both readers saw, up to the record with this message. */
  async stop(message: string) {
    this.#stopping.abort()
    await this.#running
    const until = (records: readonly LogLine[]) => {
      return records.slice(0, records.findIndex((each) => each.message === message) + 1)
    }
    return { paged: until(this.#paged), followed: until(this.#followed) }
  }

  async #readPages(start: string): Promise<void> {
    let after = start
    while (!this.#stopping.signal.aborted) {
      const query = new URLSearchParams({ after, limit: String(PAGE_RECORDS) })
      const { status, body } = await this.send('GET', `${this.path}/logs?${query}`)
      const items: readonly LogLine[] = status === 200 ? (body as Json).items : []
      this.#paged.push(...items)
      after = items.at(-1)?.cursor ?? after
      if (items.length < PAGE_RECORDS) await delay(RETRY_MS)
    }
  }

  async #follow(start: string): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const after = this.#followed.at(-1)?.cursor ?? start
      const address = `${this.#app.server.management}${this.path}/logs/follow?after=${after}`
      const headers = { authorization: `Bearer ${tokenOf(this.#app)}` }
      try {
        const response = await fetch(address, { headers, signal })
        if (response.ok) await this.#readLines(response)
      } catch {
        // The server was killed: the stream continues after its last whole line.
      }
      await delay(RETRY_MS)
    }
  }

  async #readLines(response: Response): Promise<void> {
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (text + chunk).split('\n')
      text = lines.pop()!
      for (const line of lines) {
        const record = JSON.parse(line) as LogLine
        if (record.heartbeat !== true) this.#followed.push(record)
      }
    }
  }
}

function tokenOf(app: Application): string {
  const file = join(app.installation.directory, 'config/credentials-v1.json')
  return JSON.parse(readFileSync(file, 'utf8')).accessToken
}

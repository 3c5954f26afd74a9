/**
 * Many callers of an application in a process of their own. The only argument is a CrowdTask as
 * JSON; the report is one line of JSON on standard output.
 */
import { connect, type Socket } from 'node:net'

export interface CrowdTask {
  readonly origin: string
  readonly key: string
  /** Maximum number of connections, each with one call at a time. */
  readonly connections: number
  /** Calls that begin per second; null if each connection sends its next call after a response. */
  readonly perSecond: number | null
  readonly seconds: number
}

export interface CrowdReport {
  readonly accepted: number
  /** Milliseconds of accepted calls. */
  readonly acceptedP50: number
  readonly acceptedP99: number
  /** Number of error responses by code. */
  readonly rejected: Readonly<Record<string, number>>
  /** Milliseconds of BUSY and RATE_LIMITED responses. */
  readonly rejectedP50: number
  readonly rejectedP99: number
  /** Responses 429 and 503 without Retry-After. */
  readonly withoutRetryAfter: number
  /** Calls whose connection ended before the response. */
  readonly lost: number
  /** Calls that were due while every connection had a pending call. */
  readonly unsent: number
}

const TICK_MILLIS = 5
const task: CrowdTask = JSON.parse(process.argv[2]!)
const { hostname, port } = new URL(task.origin)
const begun = performance.now()
const endsAt = begun + task.seconds * 1000
const idle: Caller[] = []
const accepted: number[] = []
const turnedAway: number[] = []
const rejected: Record<string, number> = {}
const figures = { withoutRetryAfter: 0, lost: 0, unsent: 0 }
let callers = 0
let inFlight = 0
let sent = 0

function requestOf(number: number): string {
  const argument = `{"key":"number","value":{"type":"int64","value":"${number}"}}`
  const body =
    `{"version":1,"target":"channel:production","function":"work.spin",` +
    `"arguments":{"type":"object","value":[${argument}]}}`
  return (
    `POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
    `X-Service-Key: ${task.key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
}

/** A connection with at most one pending call. */
class Caller {
  readonly #socket: Socket
  #text = ''
  #sentAt: number | null = null

  constructor() {
    callers += 1
    this.#socket = connect(Number(port), hostname)
    this.#socket.setNoDelay(true)
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk.toString('latin1')))
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => this.#lose())
  }

  send(): void {
    this.#sentAt = performance.now()
    inFlight += 1
    sent += 1
    this.#socket.write(requestOf(sent))
  }

  #receive(text: string): void {
    this.#text += text
    const bodyAt = this.#text.indexOf('\r\n\r\n') + 4
    if (bodyAt < 4) return
    const length = /content-length: (\d+)/i.exec(this.#text)?.[1]
    if (length === undefined) throw new Error(`a response has no length: ${this.#text}`)
    if (this.#text.length < bodyAt + Number(length)) return
    count(this.#text.slice(0, bodyAt), this.#text.slice(bodyAt), this.#sentAt!)
    this.#text = ''
    this.#sentAt = null
    inFlight -= 1
    if (task.perSecond !== null) idle.push(this)
    else if (performance.now() < endsAt) this.send()
  }

  #lose(): void {
    callers -= 1
    const at = idle.indexOf(this)
    if (at >= 0) idle.splice(at, 1)
    if (this.#sentAt === null) return
    inFlight -= 1
    figures.lost += 1
  }
}

function count(head: string, body: string, sentAt: number): void {
  const millis = performance.now() - sentAt
  const status = Number(head.slice(9, 12))
  if (status === 200) {
    accepted.push(millis)
    return
  }
  const { code } = JSON.parse(body).error
  rejected[code] = (rejected[code] ?? 0) + 1
  if (code === 'BUSY' || code === 'RATE_LIMITED') turnedAway.push(millis)
  const mustHave = status === 429 || status === 503
  if (mustHave && !/^retry-after: \d/im.test(head)) figures.withoutRetryAfter += 1
}

function sendNext(): void {
  const caller = idle.pop() ?? (callers < task.connections ? new Caller() : null)
  if (caller === null) figures.unsent += 1
  else caller.send()
}

function percentile(durations: readonly number[], part: number): number {
  const ascending = durations.toSorted((a, b) => a - b)
  return Math.round(ascending[Math.floor(ascending.length * part)] ?? 0)
}

/** Time limit after the end, which only a hang exceeds: a call has a deadline of 10 s. */
const LAST_RESPONSES_MILLIS = 60_000

function run(): Promise<void> {
  let due = 0
  if (task.perSecond === null) for (let i = 0; i < task.connections; i++) new Caller().send()
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const now = performance.now()
      if (task.perSecond !== null) {
        // A timer of a busy machine may be late; the calls that were due by the end are sent then.
        const until = ((Math.min(now, endsAt) - begun) * task.perSecond) / 1000
        for (; due < until; due++) sendNext()
      }
      if (now < endsAt || (inFlight > 0 && now < endsAt + LAST_RESPONSES_MILLIS)) return
      figures.lost += inFlight
      clearInterval(timer)
      resolve()
    }, TICK_MILLIS)
  })
}

await run()
const report: CrowdReport = {
  ...figures,
  accepted: accepted.length,
  acceptedP50: percentile(accepted, 0.5),
  acceptedP99: percentile(accepted, 0.99),
  rejected,
  rejectedP50: percentile(turnedAway, 0.5),
  rejectedP99: percentile(turnedAway, 0.99),
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))

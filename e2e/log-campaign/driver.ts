/** Writes the log by Mutations, reads it in every way, prunes it, and kills the server. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Application, int64, type Json, mutation } from '../application.ts'
import type { ArchivedRecord, LogHistory } from './checker.ts'
import { LogReader } from './reader.ts'

const IN_FLIGHT = 16
/** Maximum number of records of one prune. Records that a reader has not read are never pruned. */
const PRUNE_MAX = 200

export interface CampaignOptions {
  readonly kills: number
  /** Acknowledged Mutations before each kill. */
  readonly mutations: number
  /** Returns the contents of the segments, in the order of their names. */
  readonly archived: () => readonly Buffer[]
}

export class LogCampaign {
  readonly #app: Application
  readonly #acknowledged: number[] = []
  #next = 0
  #isWriting = true
  #pruned = 0

  constructor(app: Application) {
    this.#app = app
  }

  async run({ kills, mutations, archived }: CampaignOptions): Promise<LogHistory> {
    const reader = await LogReader.open(this.#app)
    const writers = Array.from({ length: IN_FLIGHT }, () => this.#write())
    for (let i = 1; i <= kills; i++) {
      const until = this.#acknowledged.length + mutations
      while (this.#acknowledged.length < until) await delay(10)
      await this.#app.restart('kill')
      await this.#prune(reader)
    }
    this.#isWriting = false
    await Promise.all(writers)
    const last = this.#next++
    await this.#call(last)
    await reader.untilSeen(messageOf(last))
    await this.#prune(reader)
    const segments = archived().map(recordsOf)
    const seen = await reader.stop(messageOf(last))
    const history = { acknowledged: [...this.#acknowledged], ...seen, segments }
    // The next check calls Mutations of its own, after the readers have stopped.
    const afterRevocation = await this.#recordsAfterRevocation(reader)
    return { ...history, pruned: this.#pruned, afterRevocation }
  }

  async #write(): Promise<void> {
    while (this.#isWriting) {
      const number = this.#next++
      if (!(await this.#call(number))) await delay(20)
    }
  }

  /** Returns whether the Mutation was acknowledged. */
  async #call(number: number): Promise<boolean> {
    const sent = { function: 'voice.say', arguments: { number: int64(number) } }
    const isAcknowledged = await mutation(this.#app, sent).then(
      ({ status }) => status === 200,
      () => false,
    )
    if (isAcknowledged) this.#acknowledged.push(number)
    return isAcknowledged
  }

  /** Prunes records that every reader has read. */
  async #prune(reader: LogReader): Promise<void> {
    const beforeMicros = reader.readUntilMicros()
    if (beforeMicros === null) return
    const { environmentId, path } = reader
    const body = { beforeMicros, maximum: PRUNE_MAX, apply: true, environmentId }
    for (let attempt = 0; attempt < 100; attempt++) {
      const reply = await reader.send('POST', `${path}/logs/prune`, body)
      if (reply.status === 200) {
        this.#pruned += (reply.body as Json).pruned
        return
      }
      await delay(50)
    }
    throw new Error('the log was not pruned')
  }

  /** Returns how often a stream has a record that was written after its session was revoked. */
  async #recordsAfterRevocation(reader: LogReader): Promise<number> {
    const stream = (await reader.openStream()).body!.getReader()
    await stream.read()
    const { body } = await reader.send('GET', '/v1/auth/sessions')
    for (const { sessionId } of (body as Json).sessions) {
      await reader.send('DELETE', `/v1/auth/sessions/${sessionId}`)
    }
    const number = this.#next++
    await this.#call(number)
    let text = ''
    for (;;) {
      const { done, value } = await stream.read()
      if (done) return text.split(`logged ${number}"`).length - 1
      text += Buffer.from(value).toString()
    }
  }
}

const messageOf = (number: number) => `logged ${number}`

function recordsOf(text: Buffer): ArchivedRecord[] {
  const [, ...lines] = text.toString().trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as ArchivedRecord)
}

/**
 * Clients of a server that is killed: Mutations at a rate, uploads, changes of the configuration,
 * new keys and logins. Each repeats a request with the same operation ID until it has an answer.
 */
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { fields, id, int64, type Json, operationId, string } from '../../application.ts'
import { SeededRandom } from '../../serializability/random.ts'
import type { Call, Change, Credential, Journal, Session, Setting } from './journal.ts'
import type { Origins, Reply } from './origins.ts'
import { SECRET } from './workspace.ts'

export interface LoadOptions {
  readonly origins: Origins
  readonly seed: number
  readonly callsPerSecond: number
  /** The Application Client that gets new keys. */
  readonly clientId: string
  /** The journal of the history that the server has. */
  readonly journal: () => Journal
}

const TICK_MILLIS = 5
const RETRY_MILLIS = 50
const POLL_MILLIS = 100
/** Time limit for all attempts of a request, which only a hang exceeds. */
const DEADLINE_MILLIS = 600_000
const UPLOAD_MILLIS = 200
const CHANGE_MILLIS = 100
const LOGIN_MILLIS = 400
/** Calls without an answer; beyond it no call is sent. */
const CALLS_AT_ONCE = 256
const REGISTERS = 2_000
const TOGGLE_SHARE = 0.15
const NAMES = 8
const FILE_BYTES_MAX = 60_000
const LONG_FILE_BYTES_MAX = 2_000_000
const LONG_FILE_SHARE = 0.05
/** Answers after which a request is repeated: the server starts, ends, or has too much to do. */
const REPEATED = new Set([429, 503, 504])

export class Load {
  readonly failures: string[] = []
  /** Changes while the target of backups cannot be reached: 0 is reachable. */
  outages = 0
  readonly #options: LoadOptions
  readonly #random: SeededRandom
  #next = 1
  #isRunning = false
  #parts: Promise<void>[] = []
  readonly #calls = new Set<Promise<void>>()

  constructor(options: LoadOptions) {
    this.#options = options
    this.#random = new SeededRandom(options.seed, 0)
  }

  /** Number of the next call. */
  get next(): number {
    return this.#next
  }

  start(): void {
    this.#isRunning = true
    this.#parts = [
      this.#sendCalls(),
      this.#loop(UPLOAD_MILLIS, () => this.#upload()),
      this.#changeControl(),
      this.#loop(LOGIN_MILLIS, () => this.#login()),
      this.#poll(),
    ]
  }

  /** Sends nothing more. Calls that have no answer then stay in the journal without one. */
  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#parts)
    await Promise.all(this.#calls)
  }

  /**
   * Sends a call until it has an answer or the load stops; `insists` means until it has one.
   * Returns whether the server had executed it before.
   */
  async send(call: Call, { insists = false } = {}): Promise<boolean> {
    const { change } = call
    const given =
      change.kind === 'attach'
        ? { text: string(String(call.number)), file: id(change.fileId) }
        : { key: int64(change.key), value: int64(call.number) }
    const { operationId } = call
    const message = { function: `registers.${change.kind}`, arguments: given, operationId }
    const reply = await this.#repeated(
      () => this.#options.origins.call('mutation', message),
      insists,
    )
    if (reply === null) return false
    const { metadata, result } = reply.body
    // A file that was uploaded just before the loss of the disk is not there.
    if (metadata.commitSequence === null) return false
    const sequence = Number(metadata.commitSequence)
    call.answer = { sequence, result: result.value, receivedMillis: Date.now() }
    return metadata.replayed
  }

  async #sendCalls(): Promise<void> {
    const { callsPerSecond, journal } = this.#options
    let due = 0
    for (let before = performance.now(); this.#isRunning; ) {
      await delay(TICK_MILLIS)
      const now = performance.now()
      due = Math.min(CALLS_AT_ONCE, due + ((now - before) * callsPerSecond) / 1_000)
      before = now
      for (; due >= 1 && this.#calls.size < CALLS_AT_ONCE; due--) {
        const kind = this.#random.chance(TOGGLE_SHARE) ? 'toggle' : 'put'
        this.#begin(journal(), { kind, key: this.#random.below(REGISTERS) })
      }
    }
  }

  #begin(journal: Journal, change: Call['change']): void {
    const number = this.#next++
    const call: Call = {
      number,
      operationId: operationId(),
      change,
      sentMillis: Date.now(),
      answer: null,
    }
    journal.calls.push(call)
    const sent = this.send(call).then(() => undefined)
    this.#calls.add(sent)
    void sent.finally(() => this.#calls.delete(sent))
  }

  async #upload(): Promise<void> {
    const { origins, journal } = this.#options
    const isLong = this.#random.chance(LONG_FILE_SHARE)
    const length = 1 + this.#random.below(isLong ? LONG_FILE_BYTES_MAX : FILE_BYTES_MAX)
    const bytes = randomBytes(length)
    const granted = await origins.call('action', {
      function: 'uploads.grantUpload',
      arguments: {
        contentType: string('application/octet-stream'),
        maximumBytes: int64(length),
        key: { type: 'null' },
      },
    })
    if (granted?.status !== 200) return
    const { path, token } = fields(granted.body.result)
    const headers = { authorization: `Bearer ${token.value}` }
    const reply = await origins.transfer(path.value, { method: 'PUT', headers, body: bytes })
    if (reply?.status !== 201 || !this.#isRunning) return
    const stored = (await reply.json().catch(() => null)) as Json
    if (stored === null || !this.#isRunning) return
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.#begin(journal(), { kind: 'attach', fileId: stored.file.fileId, sha256 })
  }

  async #changeControl(): Promise<void> {
    const { origins } = this.#options
    const read = await this.#repeated(() => origins.manage('GET', `${origins.base}/configuration`))
    if (read === null) return
    let revision: string = read.body.revision
    await this.#loop(CHANGE_MILLIS, async () => {
      const { control } = this.#options.journal()
      const number = control.length
      if (number % 10 === 9) return this.#createCredential(control)
      const isSecret = number % 10 === 4
      const setting: Setting = {
        number,
        kind: isSecret ? 'secret' : 'variable',
        name: isSecret ? SECRET : `NAME_${number % NAMES}`,
        value: `value ${this.#next}`,
        sentMillis: Date.now(),
        answeredBefore: null,
      }
      control.push(setting)
      const { kind, value } = setting
      const body = { expectedRevision: revision, kind, value, changedAtMicros: micros() }
      const key = operationId()
      const path = `${origins.base}/configuration/${setting.name}`
      const reply = await this.#change(setting, () =>
        origins.manage('PUT', path, { operationId: key, body }),
      )
      revision = reply?.body.change.revision ?? revision
    })
  }

  async #createCredential(control: (Setting | Credential)[]): Promise<void> {
    const { origins, clientId } = this.#options
    const credential: Credential = {
      number: control.length,
      kind: 'credential',
      credentialId: operationId().replace('opn_', 'crd_'),
      key: null,
      sentMillis: Date.now(),
      answeredBefore: null,
    }
    control.push(credential)
    const { credentialId, number } = credential
    const body = {
      credentialId,
      name: `key ${number}`,
      scopes: ['query'],
      createdAtMicros: micros(),
    }
    const path = `${origins.base}/application-clients/${clientId}/credentials`
    const key = operationId()
    const reply = await this.#change(credential, () =>
      origins.manage('POST', path, { operationId: key, body }),
    )
    credential.key = reply?.body.key ?? null
  }

  async #login(): Promise<void> {
    const { origins, journal } = this.#options
    const [, projectId, environmentId] = /projects\/(\w+)\/environments\/(\w+)/.exec(origins.base)!
    const scope = { kind: 'environment', projectId, environmentId }
    const { sessions } = journal()
    const operatorName = `operator ${this.#next}`
    const body = { operatorName, role: 'observer', scope }
    const invited = await origins.manage('POST', '/v1/access/invitations', { body })
    if (invited?.status !== 201) return
    const sentMillis = Date.now()
    const exchanged = await origins.manage('POST', '/v1/auth/exchange', {
      token: null,
      body: { code: invited.body.code },
    })
    // An exchange without an answer may have made a session whose token is lost.
    if (exchanged?.status !== 201) return
    const token: string = exchanged.body.accessToken
    const number = sessions.length
    const session: Session = {
      number,
      kind: 'session',
      token,
      sentMillis,
      answeredBefore: this.#next,
    }
    sessions.push(session)
  }

  /**
   * Reads what the server says about its backups. A session is in a backup after two increments
   * that began later: rows of the identity database follow the commits of an increment.
   */
  async #poll(): Promise<void> {
    const { origins, journal: current } = this.#options
    let waiting: { outages: number; sessions: number; numbers: number[] } | null = null
    await this.#loop(POLL_MILLIS, async () => {
      const journal = current()
      const { outages } = this
      const reply = await origins.manage('GET', `${origins.base}/metrics`)
      if (reply?.status !== 200) {
        waiting = null
        return
      }
      const sequence = Number(reply.body.gauges.backupSequence)
      const filesSequence = Number(reply.body.gauges.backupFilesSequence)
      journal.reported = Math.max(journal.reported, sequence)
      journal.reportedFiles = Math.max(journal.reportedFiles, filesSequence)
      if (waiting?.outages !== this.outages || outages !== this.outages || outages % 2 === 1) {
        waiting = {
          outages: this.outages,
          sessions: journal.sessions.length,
          numbers: [this.#next],
        }
        return
      }
      const sent = waiting.numbers.at(-1)!
      const isWritten = journal.calls.some(
        ({ number, answer }) => number >= sent && answer !== null && answer.sequence <= sequence,
      )
      if (!isWritten) return
      waiting.numbers.push(this.#next)
      if (waiting.numbers.length <= 3) return
      journal.reportedSessions = Math.max(journal.reportedSessions, waiting.sessions)
      waiting = null
    })
  }

  async #change(change: Change, send: () => Promise<Reply | null>): Promise<Reply | null> {
    const reply = await this.#repeated(send)
    if (reply !== null) change.answeredBefore = this.#next
    return reply
  }

  /** Repeats a request until it has a final answer. Returns null if it has none. */
  async #repeated(send: () => Promise<Reply | null>, insists = false): Promise<Reply | null> {
    const deadline = performance.now() + DEADLINE_MILLIS
    for (;;) {
      const reply = await send()
      if (reply !== null && reply.status < 300) return reply
      if (reply !== null && !REPEATED.has(reply.status)) {
        this.failures.push(`${reply.status} ${JSON.stringify(reply.body)}`)
        return null
      }
      if (!this.#isRunning && !insists) return null
      if (performance.now() > deadline) throw new Error(`no answer: ${JSON.stringify(reply)}`)
      await delay(RETRY_MILLIS)
    }
  }

  async #loop(millis: number, run: () => Promise<void>): Promise<void> {
    while (this.#isRunning) {
      await run()
      await delay(millis)
    }
  }
}

const micros = () => String(Date.now() * 1_000)

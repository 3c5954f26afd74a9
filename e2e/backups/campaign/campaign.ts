/**
 * A server with continuous backups under calls, which is killed together with the target of its
 * backups, and which loses its disk. What is restored is compared with the journal of the clients,
 * and serves the next round.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { type Application, application, operationId } from '../../application.ts'
import { argv } from '../../argv.ts'
import { type Environment, productEnvironment } from '../../harness.ts'
import { SeededRandom } from '../../serializability/random.ts'
import { type NewServer, newServer, restore } from '../backups.ts'
import { check, readContents, resolveCalls, type Verdict } from './checker.ts'
import { type Figures, noFigures } from './figures.ts'
import { Journal } from './journal.ts'
import { Load } from './load.ts'
import { Origins } from './origins.ts'
import { type CampaignTarget, TARGETS, type TargetKind } from './targets.ts'
import { writeRegisters } from './workspace.ts'

export interface CampaignOptions {
  readonly seed: number
  readonly documents: 'sqlite' | 'postgres'
  readonly target: TargetKind
  readonly callsPerSecond: number
  /** Losses of the disk. */
  readonly rounds: number
  /** Longest time between two faults. */
  readonly pauseMillisMax: number
  /** Restores to random times and sequences after the last round. */
  readonly times: number
}

/** The access token of the owner is valid for ten minutes. */
const MILLIS_MAX = 420_000
/** Answered calls before the faults of a round. */
const CALLS_MIN = 50
const POLL_MILLIS = 20
/** Time limit that only a hang exceeds. */
const DEADLINE_MILLIS = 600_000
/** Time after an outage in which the server may wait before it tries the target again. */
const RECOVERY_MILLIS = 35_000
/** The clock of the server may differ from that of this process by this much. */
const CLOCK_MILLIS = 20

interface History {
  readonly journal: Journal
  /** Time at which the server first said that it can be restored; null before that. */
  firstMillis: number | null
  endMillis: number
}

export async function runCampaign(options: CampaignOptions): Promise<Figures> {
  const documents = options.documents === 'postgres' ? await freshDatabase() : null
  let campaign: Campaign | null = null
  try {
    campaign = await Campaign.begin(options, documents)
    await campaign.run()
    return campaign.figures
  } finally {
    await campaign?.dispose()
    await documents?.drop()
  }
}

class Campaign {
  readonly figures = noFigures()
  readonly #options: CampaignOptions
  readonly #app: Application
  readonly #target: CampaignTarget
  readonly #identity: string
  readonly #backupEnvironment: Environment
  readonly #clientId: string
  readonly #origins: Origins
  readonly #random: SeededRandom
  readonly #load: Load
  readonly #histories = new Map<string, History>()
  readonly #restored: NewServer[] = []
  #environment: Environment
  #root: string
  #historyId = ''
  #isTargetUp = true
  /** End of the last outage of the target. */
  #reachableMillis = 0

  private constructor(parts: {
    options: CampaignOptions
    app: Application
    target: CampaignTarget
    identity: string
    clientId: string
    backupEnvironment: Environment
    documents: Environment
  }) {
    const { options, app, documents } = parts
    this.#options = options
    this.#app = app
    this.#target = parts.target
    this.#identity = parts.identity
    this.#clientId = parts.clientId
    this.#backupEnvironment = parts.backupEnvironment
    this.#environment = documents
    this.#root = app.installation.productRoot
    this.#origins = new Origins(app)
    this.#random = new SeededRandom(options.seed, 1)
    this.#load = new Load({
      origins: this.#origins,
      seed: options.seed,
      callsPerSecond: options.callsPerSecond,
      clientId: parts.clientId,
      journal: () => this.#history.journal,
    })
  }

  static async begin(options: CampaignOptions, database: TestDatabase | null): Promise<Campaign> {
    const documents: Environment =
      database === null ? {} : { SERVICE_PLATFORM_DATABASE_URL: database.url }
    const app = await application(writeRegisters, documents)
    const { directory } = app.installation
    const secret = await generateX25519Identity()
    const identity = join(directory, 'backup.key')
    writeFileSync(identity, `${secret}\n`, { mode: 0o600 })
    const target = await TARGETS[options.target](directory)
    const backupEnvironment = {
      ...target.environment,
      SERVICE_BACKUP_RECIPIENTS: await identityToRecipient(secret),
    }
    const remote = argv`--remote --root ${app.installation.productRoot}`
    const created = await app.svc(argv`clients create ${remote} --name keys --kind confidential`)
    const { clientId } = created.client
    const campaign = new Campaign({
      options,
      app,
      target,
      identity,
      clientId,
      backupEnvironment,
      documents,
    })
    await app.server.stop()
    await app.server.ended
    await campaign.#start()
    campaign.#historyId = await campaign.#storedHistory()
    return campaign
  }

  async run(): Promise<void> {
    const begun = performance.now()
    for (let round = 0; round < this.#options.rounds; round++) {
      if (performance.now() - begun > MILLIS_MAX) break
      await this.#round(round)
      this.#checkFailures()
      if (this.figures.violations.length > 0) return
    }
    await this.#finish()
    for (let i = 0; i < this.#options.times; i++) await this.#restoreEarlier(i)
  }

  async dispose(): Promise<void> {
    await this.#load.stop()
    await this.#target.dispose()
    await this.#app.installation.dispose()
    for (const server of this.#restored) await server.dispose()
  }

  get #history(): History {
    let history = this.#histories.get(this.#historyId)
    if (history === undefined) {
      history = { journal: new Journal(), firstMillis: null, endMillis: 0 }
      this.#histories.set(this.#historyId, history)
    }
    return history
  }

  async #start(): Promise<void> {
    const { installation } = this.#app
    this.#app.server = await installation.start({
      ...productEnvironment(installation),
      ...this.#environment,
      ...this.#backupEnvironment,
    })
  }

  async #round(round: number): Promise<void> {
    const journal = this.#history.journal
    const before = journal.calls.length
    this.#load.start()
    const answered = () => journal.calls.filter(({ answer }) => answer !== null).length
    await this.#until('calls are answered', () => answered() >= before + CALLS_MIN)
    // Without a whole backup of its own history a server can be restored from the one before.
    if (round === 0 || this.#random.chance(0.8)) await this.#untilRestorable()
    for (let faults = this.#random.below(3); faults > 0; faults--) {
      await this.#pause()
      await this.#random.pick([
        () => this.#killServer(),
        () => this.#killTarget(),
        () => this.#killBoth(),
        () => this.#requestBase(),
      ])()
    }
    await this.#pause()
    // The target may fail at the same moment.
    if (this.#random.chance(0.2)) await this.#stopTarget()
    await this.#loseDisk(round)
  }

  async #killServer(): Promise<void> {
    this.#app.server.kill()
    await this.#app.server.ended
    this.figures.serverKills += 1
    await this.#start()
  }

  async #killTarget(): Promise<void> {
    await this.#stopTarget()
    await this.#pause()
    await this.#startTarget()
  }

  async #killBoth(): Promise<void> {
    await this.#stopTarget()
    await this.#killServer()
    await this.#pause()
    await this.#startTarget()
  }

  async #stopTarget(): Promise<void> {
    if (!this.#isTargetUp) return
    this.#isTargetUp = false
    this.#load.outages += 1
    await this.#target.kill()
    this.figures.targetKills += 1
  }

  async #startTarget(): Promise<void> {
    if (this.#isTargetUp) return
    await this.#target.start()
    this.#load.outages += 1
    this.#isTargetUp = true
    this.#reachableMillis = Date.now()
  }

  async #requestBase(): Promise<void> {
    const body = { changedAtMicros: String(Date.now() * 1_000) }
    await this.#origins.manage('POST', `${this.#origins.base}/backups`, {
      operationId: operationId(),
      body,
    })
  }

  /** Kills the server, removes everything that it stored, and restores its newest backup. */
  async #loseDisk(round: number): Promise<void> {
    const killedMillis = Date.now()
    const wasReachable = this.#isTargetUp && killedMillis - this.#reachableMillis > RECOVERY_MILLIS
    const hadBackup = this.#history.journal.reported > 0
    this.#app.server.kill()
    await this.#app.server.ended
    await this.#load.stop()
    this.#history.endMillis = Date.now()
    await this.#startTarget()
    rmSync(this.#root, { recursive: true })
    const { report, server } = await this.#restore(`round-${round}`, [])
    const lost = this.#history.journal
    const source = this.#histories.get(report.fromHistoryId)!
    const { journal } = source
    const unresolved = lost.calls.filter(({ answer }) => answer === null)
    if (hadBackup || source === this.#history) {
      const kept = report.sequence >= lost.reported && source === this.#history
      if (!kept) this.#violate(`${report.sequence} is restored, and ${lost.reported} was reported`)
    }
    const calls = lost.calls.filter(
      ({ answer }) =>
        answer !== null && (source !== this.#history || answer.sequence > report.sequence),
    )
    const oldest = calls.reduce(
      (min, { answer }) => Math.min(min, answer!.receivedMillis),
      killedMillis,
    )
    const figures = wasReachable && hadBackup ? 'lostMillis' : 'otherLostMillis'
    this.figures[figures].push(killedMillis - oldest)
    this.#environment = server.environment
    this.#root = server.root
    await this.#start()
    const verdict = await this.#check(journal, report, unresolved)
    this.#historyId = report.historyId
    const { control, sessions } = verdict
    this.#histories.set(report.historyId, {
      journal: journal.restoredTo(report.sequence, { control, sessions }),
      firstMillis: null,
      endMillis: 0,
    })
    // They were executed by the restored server.
    this.#history.journal.calls.push(...verdict.executed)
    this.figures.rounds += 1
  }

  async #check(
    journal: Journal,
    { sequence, missingFiles }: Readonly<Record<'missingFiles' | 'sequence', number>>,
    unresolved: Journal['calls'],
  ) {
    const options = {
      origins: this.#origins,
      journal,
      sequence,
      missingFiles,
      clientId: this.#clientId,
      random: this.#random,
    }
    const contents = await readContents(options)
    const violations: string[] = []
    const executed = await resolveCalls(this.#load, unresolved, { sequence, violations })
    const verdict: Verdict = await check(options, contents)
    for (const each of [...violations, ...verdict.violations]) this.#violate(each)
    this.figures.lostFiles += verdict.lostFiles
    return { ...verdict, executed }
  }

  /** Waits until everything can be restored, and ends the server. */
  async #finish(): Promise<void> {
    this.#load.start()
    await this.#untilRestorable()
    await this.#pause()
    await this.#load.stop()
    const { journal } = this.#history
    const answers = journal.calls.flatMap(({ answer }) => answer ?? [])
    const newest = answers.reduce((max, { sequence }) => Math.max(max, sequence), 0)
    await this.#until(`${newest} can be restored`, async () => (await this.#reported()) >= newest)
    this.#app.server.kill()
    await this.#app.server.ended
    this.#history.endMillis = Date.now()
    this.#checkFailures()
    const all = [...this.#histories.values()].map((history) => history.journal)
    this.figures.calls = new Set(all.flatMap(({ calls }) => calls)).size
    this.figures.sessions = new Set(all.flatMap(({ sessions }) => sessions)).size
    const attached = all.flatMap(({ calls }) =>
      calls.filter(({ change }) => change.kind === 'attach'),
    )
    this.figures.files = new Set(attached).size
  }

  /** Restores to a random time or to a random sequence of a random history, and compares. */
  async #restoreEarlier(number: number): Promise<void> {
    const histories = [...this.#histories].filter(([, { firstMillis }]) => firstMillis !== null)
    const [historyId, history] = this.#random.pick(histories)
    const from = history.firstMillis!
    const time = from + this.#random.below(Math.max(1, history.endMillis - from))
    const chosen = number % 2 === 0 ? null : this.#increment(historyId)
    const goal =
      chosen === null
        ? argv`--to-time ${new Date(time).toISOString()}`
        : argv`--to-sequence ${chosen}`
    const args = argv`${goal} --history ${historyId}`
    const { report, server } = await this.#restore(`earlier-${number}`, args)
    const { sequence } = report
    const { journal } = history
    if (chosen !== null && sequence !== chosen) {
      this.#violate(`sequence ${sequence} was restored, not ${chosen}`)
    }
    if (chosen === null) this.#checkTime(journal, time, sequence, historyId)
    this.#environment = server.environment
    this.#root = server.root
    await this.#start()
    await this.#check(journal, report, [])
    this.#app.server.kill()
    await this.#app.server.ended
    this.figures.times += 1
  }

  /** A state at a time has what was answered before, and nothing that was sent later. */
  #checkTime(journal: Journal, time: number, sequence: number, historyId: string): void {
    const isShipped = this.#incrementsBegin(historyId, sequence)
    for (const { number: call, answer, sentMillis } of journal.calls) {
      if (answer === null) continue
      const isBefore = answer.receivedMillis + CLOCK_MILLIS < time && answer.sequence > sequence
      // What was lost with the disk is in no backup.
      if (isBefore && isShipped) this.#violate(`time ${time}: call ${call} is missing`)
      const isAfter = sentMillis - CLOCK_MILLIS > time && answer.sequence <= sequence
      if (isAfter) this.#violate(`time ${time}: call ${call} was sent later`)
    }
  }

  async #restore(name: string, args: readonly string[]) {
    const server = await newServer(this.#app, { name, documents: this.#options.documents })
    this.#restored.push(server)
    const environment = Object.fromEntries(
      Object.entries(this.#target.environment).filter(([key]) => key.includes('_S3_')),
    )
    const result = await restore({
      from: this.#target.from,
      identity: this.#identity,
      to: server,
      args: [...args, '--json'],
      environment,
    })
    if (result.status !== 0) throw new Error(`restore ${args}: ${result.status} ${result.stderr}`)
    return { report: JSON.parse(result.stdout), server }
  }

  /** Returns whether an increment has each commit after this sequence, so that a time is exact. */
  #incrementsBegin(historyId: string, sequence: number): boolean {
    return this.#sidecars(historyId).some(
      ({ kind, fromSequence, toSequence }) =>
        kind === 'increment' && fromSequence <= sequence && sequence < toSequence,
    )
  }

  /** Returns a random sequence within the increments of a history; null if they have no commits. */
  #increment(historyId: string): number | null {
    const sidecars = this.#sidecars(historyId)
    const bases = sidecars.filter(({ kind }) => kind === 'base')
    const oldest = Math.min(...bases.map(({ toSequence }) => toSequence))
    const increments = sidecars.filter(
      ({ kind, fromSequence, toSequence }) =>
        kind === 'increment' && fromSequence >= oldest && toSequence > fromSequence,
    )
    if (increments.length === 0) return null
    const { fromSequence, toSequence } = this.#random.pick(increments)
    return fromSequence + 1 + this.#random.below(toSequence - fromSequence)
  }

  #sidecars(historyId: string): { kind: string; fromSequence: number; toSequence: number }[] {
    const { files } = this.#target
    const names = readdirSync(files, { recursive: true, encoding: 'utf8' })
    const found = names.filter((name) => name.includes(historyId) && name.endsWith('.json'))
    return found.map((name) => JSON.parse(readFileSync(join(files, name), 'utf8')))
  }

  /** Returns the first history of the target, once there is one. */
  async #storedHistory(): Promise<string> {
    for (;;) {
      const names = readdirSync(this.#target.files, { recursive: true, encoding: 'utf8' })
      const found = names.flatMap((name) => /hst_\w{26}/.exec(name)?.[0] ?? [])
      if (found.length > 0) return found[0]!
      await delay(POLL_MILLIS)
    }
  }

  async #reported(): Promise<number> {
    const reply = await this.#origins.manage('GET', `${this.#origins.base}/metrics`)
    return reply?.status === 200 ? Number(reply.body.gauges.backupSequence) : 0
  }

  async #untilRestorable(): Promise<void> {
    const history = this.#history
    await this.#until('there is a backup', () => history.journal.reported > 0)
    history.firstMillis ??= Date.now()
  }

  async #until(what: string, isDone: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + DEADLINE_MILLIS
    while (!(await isDone())) {
      if (performance.now() > deadline)
        throw new Error(
          `not within the time: ${what}\n${this.#app.server.lines.slice(-40).join('\n')}`,
        )
      if (this.#load.failures.length > 0) throw new Error(this.#load.failures.join('\n'))
      await delay(POLL_MILLIS)
    }
  }

  async #pause(): Promise<void> {
    await delay(this.#random.below(this.#options.pauseMillisMax))
  }

  #checkFailures(): void {
    for (const failure of this.#load.failures) this.#violate(failure)
  }

  #violate(violation: string): void {
    this.figures.violations.push(`round ${this.figures.rounds}: ${violation}`)
  }
}

/**
 * The application processes of a server, as the main process sees them: it starts them, tells each
 * of its commits, answers what they ask and replaces one that ends.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { DocumentStore } from '../../documents/store.ts'
import type { CommitWrites } from '../../engine/commits/read-set.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import type { ComponentHealth } from '../../engine/usage/health.ts'
import { Fault } from '../../errors/fault.ts'
import { SHARED_LIMITS_BYTES } from '../../http/rate-limits.ts'
import {
  SHARED_TRANSFERS_BYTES,
  SharedTransferState,
} from '../../http/transfers/shared-transfers.ts'
import type { KeyUses } from '../../product/application-clients/key-verification.ts'
import type { WriteKeySet } from '../../product/functional-tokens/providers.ts'
import type { ServedTargets } from '../../product/serving/serving.ts'
import { ownCommand } from '../../runner/command.ts'
import { SharedCounts, sharedCountsBytes } from '../../system/memory/shared-counts.ts'
import { createSharedMemory } from '../../system/memory/shared-memory.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { FunctionCounts } from '../../telemetry/metrics/function-figures.ts'
import { addedCounts, type Metrics, type ProcessMetrics } from '../../telemetry/metrics/metrics.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { DIRECTORY_PREFIX, removeAbandoned, SOCKET } from './abandoned-directories.ts'
import { APPLICATION_PROCESS_ARGUMENT } from './argument.ts'
import { Channel } from './channel.ts'
import { BEAT_MILLIS, Heartbeat } from './heartbeat.ts'
import type {
  ApplicationSide,
  MainSide,
  ProcessStatus,
  SentCertificate,
  StartMessage,
} from './messages.ts'
import { answerCall } from './remote-calls.ts'
import { SharedCounters } from './shared-counters.ts'

/** Pause before a process is started again that ended before it was ready. */
const RESTART_MILLIS = 1_000
/** Time for which a promotion waits for an application process that does not answer. */
const WARM_MILLIS_MAX = 30_000
/** Time for which a reader of metrics waits for a process that does not answer. */
const STATUS_MILLIS_MAX = 5_000
/** Time after which a process that should end is killed; it drains for less. */
const DRAIN_MILLIS_MAX = 30_000

export interface ApplicationProcessesOptions {
  readonly count: number
  readonly system: Pick<System, 'nowMillis' | 'randomBytes'>
  readonly log: Logger
  readonly metrics: Metrics
  readonly traces: Traces | null
}

/** The parts of the open Environment that application processes use. */
export interface ServedParts {
  readonly engine: Engine
  readonly store: DocumentStore
  readonly load: (releaseId: ReleaseId) => Release | Promise<Release>
  readonly writeUses: (uses: KeyUses) => void
  /** Must not throw. */
  readonly writeKeySet: WriteKeySet
  readonly addRecords: (records: readonly string[]) => void
  /** Returns the certificate that is served now; null if application processes end no TLS. */
  readonly certificate: () => SentCertificate | null
  readonly start: Omit<
    StartMessage,
    | 'certificate'
    | 'countersPath'
    | 'limitsPath'
    | 'transfersPath'
    | 'countsPath'
    | 'countsSalt'
    | 'processes'
    | 'number'
    | 'originPath'
    | 'latestSequence'
    | 'schema'
  >
}

type ToApplication = Channel<MainSide, ApplicationSide>

interface ApplicationProcess {
  readonly channel: ToApplication
  readonly heartbeat: Heartbeat
  readonly kill: () => void
  readonly exited: Promise<unknown>
  readonly warm: Set<ReleaseId>
  isReady: boolean
  /** The last report of the process; null before. */
  status: ProcessStatus | null
}

export class ApplicationProcesses {
  /** The Unix socket on which the main process answers forwarded requests. */
  readonly originPath: string
  /** The memory in which all processes keep the rate limits of the application origin. */
  readonly limits: BigInt64Array
  /** The pace of transfers, which all processes share. */
  readonly transfers: SharedTransferState
  readonly #options: ApplicationProcessesOptions
  readonly #directory: string
  readonly #counters: SharedCounters
  /** Connections and downloads, which all processes count. */
  readonly #counts: BigInt64Array
  readonly #salt: string
  readonly #processes = new Set<ApplicationProcess>()
  /** The counts of processes that have ended: counters never decrease. */
  #ended: ProcessMetrics | null = null
  #served: ServedTargets = new Map()
  #isStopping = false
  #timer: ReturnType<typeof setInterval> | null = null

  constructor(options: ApplicationProcessesOptions) {
    this.#options = options
    this.#directory = mkdtempSync(join(tmpdir(), DIRECTORY_PREFIX))
    this.originPath = join(this.#directory, SOCKET)
    this.#counters = SharedCounters.create(join(this.#directory, 'counters'))
    this.limits = createSharedMemory(join(this.#directory, 'limits'), SHARED_LIMITS_BYTES)
    const transfersPath = join(this.#directory, 'transfers')
    this.transfers = new SharedTransferState(
      createSharedMemory(transfersPath, SHARED_TRANSFERS_BYTES),
      0,
    )
    this.#counts = createSharedMemory(
      join(this.#directory, 'counts'),
      sharedCountsBytes(options.count),
    )
    this.#salt = options.system.randomBytes(16).toHex()
    options.metrics.addProcesses({
      refresh: () => this.#refresh(),
      reported: () => this.#reported(),
      functionsOf: (releaseId) => this.#functionsOf(releaseId),
    })
  }

  /** Number of processes. */
  get count(): number {
    return this.#options.count
  }

  /** Tells of a durable commit. Call it before the commit is answered. */
  committed(sequence: number, { documents, keys }: CommitWrites): void {
    let count = documents.length
    for (const { length } of keys.values()) count += length
    for (const { channel, heartbeat } of this.#processes) {
      channel.post({ kind: 'commit', commit: [sequence, { documents, keys }] })
      heartbeat.sent(count)
    }
    this.#counters.publishDurable(sequence)
  }

  /** Tells of a change of the control database. Call it before the change is answered. */
  controlChanged(changes: number): void {
    for (const { channel } of this.#processes) channel.post({ kind: 'control', changes })
    this.#counters.publishControl(changes)
  }

  /**
   * Tells that the main process serves another Release or policy. Call it before any caller is
   * told. A process answers further requests once it serves the same.
   */
  servedChanged(changes: number, served: ServedTargets): void {
    this.#served = served
    for (const { channel } of this.#processes) channel.post({ kind: 'served', changes, served })
    this.#counters.publishServed(changes)
  }

  /** Starts the processes. Resolves when all of them listen. */
  async start(parts: ServedParts): Promise<void> {
    this.#counters.publishDurable(parts.store.latestSequence)
    parts.store.onSchemaChange(() => {
      const schema = parts.store.schema()
      for (const { channel } of this.#processes) channel.post({ kind: 'schema', schema })
    })
    const { count, system } = this.#options
    void removeAbandoned(tmpdir(), system.nowMillis())
    this.#timer = setInterval(() => this.#beat(), BEAT_MILLIS)
    await Promise.all(Array.from({ length: count }, (_, i) => this.#startOne(parts, i + 1)))
  }

  /** Returns whether every process would answer a call of the Release at once. */
  isWarm(releaseId: ReleaseId): boolean {
    return [...this.#processes].every(({ warm }) => warm.has(releaseId))
  }

  /**
   * Prepares the Release in every process that is ready; one that starts prepares what is served.
   * Never rejects: a process tries again by itself.
   */
  async warm(releaseId: ReleaseId): Promise<void> {
    const signal = AbortSignal.timeout(WARM_MILLIS_MAX)
    await Promise.all(
      [...this.#processes].map(async (each) => {
        if (!each.isReady) return
        const timedOut = new Promise((resolve) => signal.addEventListener('abort', resolve))
        const asked = each.channel.ask({ kind: 'warm', releaseId })
        try {
          await Promise.race([asked, timedOut])
          each.warm.add(releaseId)
        } catch (error) {
          this.#options.log.warn('server.application_process_not_warm', { releaseId, error })
        }
      }),
    )
  }

  /** Health of Realtime over all processes. */
  health(): ComponentHealth {
    const all = [...this.#processes].map(({ status }) => status?.realtime.status ?? 'unavailable')
    const isUnavailable = all.length === 0 || all.every((status) => status === 'unavailable')
    if (isUnavailable) return { name: 'realtime', status: 'unavailable' }
    const isHealthy = all.every((status) => status === 'healthy')
    return { name: 'realtime', status: isHealthy ? 'healthy' : 'degraded' }
  }

  /** Lets the processes answer what is in flight, and end. */
  async drain(): Promise<void> {
    this.#isStopping = true
    for (const { channel } of this.#processes) channel.post({ kind: 'drain' })
    const timer = setTimeout(() => this.#kill(), DRAIN_MILLIS_MAX)
    await Promise.all([...this.#processes].map(({ exited }) => exited))
    clearTimeout(timer)
  }

  close(): void {
    this.#isStopping = true
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#kill()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #beat(): void {
    for (const { heartbeat } of this.#processes) heartbeat.beat()
  }

  #kill(): void {
    for (const each of this.#processes) each.kill()
  }

  async #startOne(parts: ServedParts, number: number): Promise<void> {
    const ready = Promise.withResolvers<void>()
    const { log } = this.#options
    const child = Bun.spawn(ownCommand(APPLICATION_PROCESS_ARGUMENT), {
      env: {},
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
      serialization: 'advanced',
      ipc: (envelopes: readonly unknown[]) => channel.receive(envelopes),
    })
    const channel: ToApplication = new Channel<MainSide, ApplicationSide>({
      send: (envelopes) => sendUnlessEnded(child, envelopes),
      onMessage: (message) => this.#note(parts, each, message, ready.resolve),
      onRequest: (request, signal) => this.#answer(parts, request, signal),
      lost: () => new Fault('UNAVAILABLE', { detail: 'an application process has ended' }),
    })
    const each: ApplicationProcess = {
      channel,
      heartbeat: new Heartbeat({
        ask: () => askStatus(each),
        isReady: () => each.isReady,
        onHung: () => {
          const message = 'An application process does not answer. It is ended and replaced.'
          log.error('server.application_process_hung', { message, pid: child.pid })
          each.kill()
        },
      }),
      kill: () => child.kill('SIGKILL'),
      exited: child.exited,
      warm: new Set(),
      isReady: false,
      status: null,
    }
    this.#processes.add(each)
    void child.exited.then(() => {
      channel.close()
      this.#processes.delete(each)
      SharedCounts.clear(this.#counts, { processes: this.count, number: number - 1 })
      if (each.status !== null) this.#ended = addedCounts(this.#ended, each.status.metrics)
      if (this.#isStopping) {
        ready.resolve()
        return
      }
      const { signalCode: signal, exitCode: code } = child
      const message = 'An application process has ended. It is replaced.'
      log.error('server.application_process_ended', { message, pid: child.pid, signal, code })
      const again = () => void this.#startOne(parts, number).then(ready.resolve)
      setTimeout(again, each.isReady ? 0 : RESTART_MILLIS)
    })
    // In this turn of the event loop: this process receives every later commit.
    const { store } = parts
    channel.post({
      kind: 'start',
      start: {
        ...parts.start,
        certificate: parts.certificate(),
        countersPath: join(this.#directory, 'counters'),
        limitsPath: join(this.#directory, 'limits'),
        transfersPath: join(this.#directory, 'transfers'),
        countsPath: join(this.#directory, 'counts'),
        countsSalt: this.#salt,
        processes: this.count,
        number,
        originPath: this.originPath,
        latestSequence: store.latestSequence,
        schema: store.schema(),
      },
    })
    channel.post({ kind: 'control', changes: this.#counters.control })
    channel.post({ kind: 'served', changes: this.#counters.served, served: this.#served })
    await ready.promise
  }

  #note(
    parts: ServedParts,
    each: ApplicationProcess,
    message: ApplicationSide['message'],
    onReady: () => void,
  ): void {
    switch (message.kind) {
      case 'ready':
        each.isReady = true
        onReady()
        break
      case 'keyUses':
        parts.writeUses(message.uses)
        break
      case 'keySet':
        parts.writeKeySet(message.publisher, message.keySet)
        break
      case 'log':
        parts.addRecords(message.records)
        break
      case 'status':
        each.status = message.status
    }
  }

  async #answer(
    { engine, load }: ServedParts,
    request: ApplicationSide['request'],
    signal: AbortSignal,
  ): Promise<unknown> {
    if (request.kind === 'prepare') {
      await engine.prepare(await load(request.releaseId))
      return null
    }
    const { traces } = this.#options
    return answerCall({ engine, load, traces }, request, signal)
  }

  /** Never rejects: a process that does not answer counts with what it has reported before. */
  async #refresh(): Promise<void> {
    // Where a process has ended, its last report was added to `#ended`.
    await this.#askEach(askStatus)
  }

  /** Never rejects: a process that has ended or does not answer is omitted. */
  async #functionsOf(releaseId: string): Promise<FunctionCounts[][]> {
    const answers: FunctionCounts[][] = []
    await this.#askEach(async ({ channel }) => {
      answers.push(await channel.ask<FunctionCounts[]>({ kind: 'functions', releaseId }))
    })
    return [...answers]
  }

  /** Resolves when each process has answered or ended, at the latest after STATUS_MILLIS_MAX. */
  async #askEach(ask: (each: ApplicationProcess) => Promise<void>): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, STATUS_MILLIS_MAX)
    const all = [...this.#processes].map((each) => ask(each).catch(() => undefined))
    await Promise.race([Promise.all(all), late.promise])
    clearTimeout(timer)
  }

  *#reported(): Iterable<ProcessMetrics> {
    if (this.#ended !== null) yield this.#ended
    for (const { status } of this.#processes) if (status !== null) yield status.metrics
  }
}

/** Rejects when the process has ended. */
async function askStatus(each: ApplicationProcess): Promise<void> {
  each.status = (await each.channel.ask<ProcessStatus | null>({ kind: 'status' })) ?? each.status
}

/** Sends messages. The channel of a process closes before its end is known to fail requests. */
function sendUnlessEnded(child: Subprocess, envelopes: readonly unknown[]): void {
  try {
    child.send(envelopes)
  } catch (error) {
    if ((error as { readonly code?: string }).code !== 'ERR_IPC_CHANNEL_CLOSED') throw error
  }
}

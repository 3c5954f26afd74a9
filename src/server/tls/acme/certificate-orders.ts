/**
 * Orders the certificate of the server by ACME, and renews it before it ends. A failed order leaves
 * the certificate in use as it is. The record of orders is durable before an order begins, so that
 * not even a server that is killed in each of them exceeds the budget of orders.
 */
import type { ComponentHealth } from '../../../engine/usage/health.ts'
import type { AcmeSettings } from '../../../settings/acme.ts'
import { type CertificatePair, orderedPairOf } from '../../../settings/tls.ts'
import type { System } from '../../../system/system.ts'
import type { Logger } from '../../../telemetry/log.ts'
import type { Metrics } from '../../../telemetry/metrics/metrics.ts'
import type { CertificateOrdersFile } from '../../../wire/files/certificate-orders.ts'
import type { IssuedCertificate, OrderCertificate } from './acme-authority.ts'
import { AcmeFailure, reasonOfFailure } from './acme-failure.ts'
import { AcmeFiles } from './acme-files.ts'
import type { Challenges } from './challenge-listener.ts'
import { isFor, nextOrderMillis, remainingPart, withOrder } from './order-times.ts'

/** @limit TLS: time of an order of a certificate */
export const ORDER_MILLIS_MAX = 5 * 60_000
/** The longest pause between two looks at the clock, which an operator may set. */
const LOOK_MILLIS_MAX = 60_000
/** The shortest pause, for certificates that are valid for seconds. */
const LOOK_MILLIS_MIN = 1_000
/** A renewal that failed matters from this part of the lifetime on. */
const DEGRADED_PART = 1 / 3

export interface CertificateOrdersOptions {
  readonly settings: AcmeSettings
  readonly system: Pick<System, 'nowMillis' | 'randomBytes'>
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'counters'>
  readonly challenges: Challenges
  /** The certificate of the files; null before the first one. */
  readonly pair: CertificatePair | null
  /**
   * Called once another certificate is durable in the files, with the certificate itself: the files
   * may be damaged or unreadable a moment later.
   */
  readonly onIssued: (pair: CertificatePair) => void
  readonly order: OrderCertificate
  /** Closes what the orders use. */
  readonly onStop?: () => void
}

export class CertificateOrders {
  readonly #options: CertificateOrdersOptions
  readonly #files: AcmeFiles
  readonly #stopping = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  #certificate: CertificatePair | null
  #failures = 0
  #failedAtMillis = 0
  #jitter: number
  #record: CertificateOrdersFile
  #timer: ReturnType<typeof setTimeout> | null = null
  #running: Promise<void> | null = null
  #isStarted = false

  constructor(options: CertificateOrdersOptions) {
    this.#options = options
    this.#certificate = options.pair
    this.#jitter = this.#randomPart()
    this.#files = new AcmeFiles(options.settings.directory)
    this.#record = this.#files.orders(options.settings.directoryUrl)
  }

  /** Resolves with the first certificate that is issued. */
  get issued(): Promise<void> {
    return this.#first.promise
  }

  /** Unix milliseconds. */
  get nextMillis(): number {
    const { settings, system } = this.#options
    const state = {
      certificate: this.#certificate,
      domains: settings.domains,
      record: this.#record,
      failures: this.#failures,
      failedAtMillis: this.#failedAtMillis,
      jitter: this.#jitter,
    }
    return nextOrderMillis(state, system.nowMillis())
  }

  /** Orders what is due, from now on. The caller has the lock of the root. */
  start(): void {
    this.#isStarted = true
    void this.check().finally(() => this.#schedule())
  }

  /** Orders if it is due. Resolves when no order runs. Never rejects. */
  async check(): Promise<void> {
    const isDue = this.nextMillis <= this.#options.system.nowMillis()
    if (isDue && !this.#stopping.signal.aborted) {
      this.#running ??= this.#run().finally(() => {
        this.#running = null
      })
    }
    await this.#running
  }

  /**
   * Ends an order in progress. A certificate that was issued just before is stored for the next
   * start, and passed to no one.
   */
  async stop(): Promise<void> {
    this.#stopping.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    await this.#running
    this.#options.onStop?.()
  }

  health(): ComponentHealth {
    const name = 'certificate'
    const certificate = this.#certificate
    const now = this.#options.system.nowMillis()
    const part = certificate === null ? 0 : remainingPart(certificate, now)
    if (certificate === null || part === 0) return { name, status: 'unavailable' }
    const hasFailed = this.#record.failure !== null
    const isLate = part < DEGRADED_PART || !isFor(certificate, this.#options.settings.domains)
    return { name, status: hasFailed && isLate ? 'degraded' : 'healthy' }
  }

  /**
   * Writes a certificate again whose file another program damaged, and returns whether it did. A
   * missing file stays so: an operator removes it for another certificate at the next start. Never
   * throws.
   */
  rewrite(pair: CertificatePair): boolean {
    // Before the start, another server may have the lock of the root.
    if (!this.#isStarted || this.#stopping.signal.aborted) return false
    try {
      if (!this.#files.hasCertificate()) return false
      this.#files.writeCertificate(pair.key)
    } catch {
      // The reason is that of the reading, which is logged; the next reading tries again.
      return false
    }
    const message = 'The file of the certificate was damaged, and is written again.'
    this.#options.log.warn('server.certificate_rewritten', { message })
    return true
  }

  #schedule(): void {
    if (this.#stopping.signal.aborted) return
    const wait = this.nextMillis - this.#options.system.nowMillis()
    const millis = Math.min(LOOK_MILLIS_MAX, Math.max(LOOK_MILLIS_MIN, wait))
    this.#timer = setTimeout(() => this.start(), millis)
    this.#timer.unref()
  }

  async #run(): Promise<void> {
    const { settings, system, challenges, order } = this.#options
    const late = AbortSignal.timeout(ORDER_MILLIS_MAX)
    const signal = AbortSignal.any([this.#stopping.signal, late])
    let isOrdered = false
    const onOrder = () => {
      isOrdered = true
    }
    try {
      this.#files.prepare()
      const accountKey = this.#files.accountKey()
      this.#keep({ orders: withOrder(this.#record.orders, system.nowMillis()) })
      const issued = await order({ settings, system, accountKey, challenges, signal, onOrder })
      const pair = this.#checked(issued)
      this.#files.writeCertificate(pair.key)
      this.#succeed(pair)
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#fail(error)
      else this.#keepOutcome(isOrdered ? this.#ended('cancelled') : this.#withoutPending())
    }
  }

  /**
   * Returns the pair as it is read from its file, where the text of the key has the certificate
   * too. Throws AcmeFailure for a certificate that the server could not use.
   */
  #checked({ chain, key }: IssuedCertificate): CertificatePair {
    const { settings, system } = this.#options
    const found = orderedPairOf(`${chain.trim()}\n${key.reveal().trim()}\n`)
    if (found === null) {
      throw new AcmeFailure('the authority issued something else than a certificate for the key')
    }
    if (!isFor(found, settings.domains)) {
      throw new AcmeFailure('the authority issued a certificate for other names')
    }
    if (found.endsAtMillis <= system.nowMillis()) {
      throw new AcmeFailure('the certificate has ended already: check the clock of this machine')
    }
    return found
  }

  #succeed(pair: CertificatePair): void {
    const { log, metrics, onIssued } = this.#options
    this.#certificate = pair
    this.#failures = 0
    this.#jitter = this.#randomPart()
    metrics.counters.certificatesOrdered.add()
    const { names, endsAtMillis } = pair
    const endsAt = new Date(endsAtMillis).toISOString()
    const message = `The authority issued a certificate of ${names}, until ${endsAt}.`
    log.info('server.certificate_ordered', { message, names, endsAt })
    this.#keepOutcome({ ...this.#ended('issued'), retryAtMillis: 0, failure: null })
    // Nothing would close the listeners that a certificate opens after the stop.
    if (this.#stopping.signal.aborted) return
    onIssued(pair)
    this.#first.resolve()
  }

  #fail(error: unknown): void {
    const { system, log, metrics } = this.#options
    const now = system.nowMillis()
    this.#failures += 1
    this.#failedAtMillis = now
    this.#jitter = this.#randomPart()
    metrics.counters.certificateOrderFailures.add()
    const reason = reasonOfFailure(error)
    const retryAfter = error instanceof AcmeFailure ? error.retryAfterMillis : null
    const failure = { atMillis: now, reason }
    const retryAtMillis = retryAfter === null ? 0 : Math.ceil(now + retryAfter)
    this.#keepOutcome({ ...this.#ended('failed'), retryAtMillis, failure })
    const nextAt = new Date(this.nextMillis).toISOString()
    const message = `No certificate was issued: ${reason}. The next order is at ${nextAt}.`
    log.warn('server.certificate_order_failed', { message, reason, nextAt })
  }

  /** Removes the record of an order whose request was not sent. */
  #withoutPending(): Pick<CertificateOrdersFile, 'orders'> {
    const orders = this.#record.orders
    return { orders: orders.at(-1)?.outcome === 'pending' ? orders.slice(0, -1) : orders }
  }

  #ended(outcome: 'cancelled' | 'failed' | 'issued'): Pick<CertificateOrdersFile, 'orders'> {
    const orders = this.#record.orders
    const last = orders.at(-1)
    // An order that failed before its record has none.
    if (last?.outcome !== 'pending') return { orders }
    return { orders: [...orders.slice(0, -1), { ...last, outcome }] }
  }

  /** Throws FileFailure: without a record no order begins. */
  #keep(change: Partial<CertificateOrdersFile>): void {
    const record = { ...this.#record, ...change }
    this.#files.writeOrders(record)
    this.#record = record
  }

  #keepOutcome(change: Partial<CertificateOrdersFile>): void {
    try {
      this.#keep(change)
    } catch (error) {
      this.#record = { ...this.#record, ...change }
      const message = 'The result of the order is not kept over a restart.'
      this.#options.log.warn('server.certificate_order_unrecorded', { message, error })
    }
  }

  #randomPart(): number {
    const [high = 0, low = 0] = this.#options.system.randomBytes(2)
    return (high * 256 + low) / 65_536
  }
}

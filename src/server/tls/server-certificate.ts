/**
 * The certificate of the listeners that end TLS: it is there at the start, in files, or the server
 * orders it by ACME. The watch of the files passes on each new one. One that this process ordered
 * is passed on from memory, so that no state of its file can keep it from use.
 */
import type { ComponentHealth } from '../../engine/usage/health.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import type { CertificatePair, TlsSettings } from '../../settings/tls.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { ShutdownStack } from '../shutdown-stack.ts'
import type { OrderCertificate } from './acme/acme-authority.ts'
import type { CertificateOrders } from './acme/certificate-orders.ts'
import { CERTIFICATE_CHECK_MILLIS, CertificateWatch } from './certificate-watch.ts'

interface Shared {
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** Orders a certificate; from the authority of the settings by default. */
  readonly order?: OrderCertificate
}

export class ServerCertificate {
  readonly #tls: TlsSettings
  readonly #shared: Shared
  #pair: CertificatePair | null
  #watch: CertificateWatch | null = null
  #orders: CertificateOrders | null = null
  #isStopped = false

  /** Returns null if no listener ends TLS. */
  static of(
    { tls, management, product }: ServerSettings,
    shared: Shared,
  ): ServerCertificate | null {
    const isUsed = management.endsTls || product?.applicationEndsTls === true
    return tls === null || !isUsed ? null : new ServerCertificate(tls, shared)
  }

  private constructor(tls: TlsSettings, shared: Shared) {
    this.#tls = tls
    this.#shared = shared
    const { pair, acme } = tls
    // Clients reject one that has ended, so the server waits for the next one.
    const hasEnded = pair !== null && pair.endsAtMillis <= shared.system.nowMillis()
    this.#pair = acme !== null && hasEnded ? null : pair
    shared.metrics.addSource(() => {
      const watch = this.#watch
      return watch === null ? {} : { certificateRemainingMicros: watch.remainingMicros }
    })
  }

  /** Null while the first one is awaited. */
  get pair(): CertificatePair | null {
    return this.#watch?.pair ?? this.#pair
  }

  /** True once the server closes: from then on nothing may be opened for a certificate. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Gives each new certificate to `onCertificate`, until the stop. */
  watch(onCertificate: (pair: CertificatePair) => void): void {
    if (this.#pair === null || this.#watch !== null || this.#isStopped) return
    const { paths } = this.#tls
    this.#watch = new CertificateWatch({
      paths,
      pair: this.#pair,
      ...this.#shared,
      onCertificate,
      rewrite: (pair) => this.#orders?.rewrite(pair) === true,
    })
    this.#watch.start()
  }

  /** Opens the listener of ACME challenges, if they are in use. Throws SERVER_LISTEN_FAILED. */
  async openOrders(closing: ShutdownStack): Promise<void> {
    closing.add(() => this.stop())
    const { acme: settings, pair } = this.#tls
    if (settings === null) return
    const { openOrders } = await import('./acme/open-orders.ts')
    const onIssued = (issued: CertificatePair) => this.#issued(issued)
    this.#orders = openOrders({ ...this.#shared, settings, pair, onIssued })
  }

  /** Orders what is due. The caller has the lock of the root. */
  startOrders(closing: ShutdownStack): void {
    // Before the root is closed, and its lock released.
    closing.add(() => this.stop())
    this.#orders?.start()
  }

  /** Resolves when a certificate is there. */
  async issued(): Promise<void> {
    if (this.pair === null) await this.#orders?.issued
  }

  /**
   * Opens listeners for the first certificate by `listen`. A failure may be one of the moment, such
   * as of descriptors, so it is tried again until the stop, and what needs no certificate is served
   * meanwhile.
   */
  async openListeners(listen: () => void): Promise<void> {
    const { log } = this.#shared
    let isReported = false
    while (!this.#isStopped) {
      try {
        return listen()
      } catch (error) {
        const message = 'Addresses that end TLS cannot be opened yet. They are tried again.'
        if (!isReported) log.error('server.certificate_delayed', { message, error })
        isReported = true
      }
      await new Promise<void>((resolve) => setTimeout(resolve, CERTIFICATE_CHECK_MILLIS).unref())
    }
  }

  health(): readonly ComponentHealth[] {
    if (this.#orders === null) return []
    const health = this.#orders.health()
    // The addresses are not open yet.
    if (this.#watch === null) return [{ ...health, status: 'unavailable' }]
    const isBehind = health.status === 'healthy' && this.#watch.isBehind
    return [isBehind ? { ...health, status: 'degraded' } : health]
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#watch?.stop()
    await this.#orders?.stop()
  }

  #issued(pair: CertificatePair): void {
    if (this.#watch === null) this.#pair = pair
    else this.#watch.offer(pair)
  }
}

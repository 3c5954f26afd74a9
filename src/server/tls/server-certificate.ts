/**
 * The certificate of the listeners that end TLS: it is there at the start, in files, or the server
 * orders it by ACME. Both ways end at the watch of the files, which passes on each new one.
 */
import type { ComponentHealth } from '../../engine/usage/health.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import { type CertificatePair, readOrderedPair, type TlsSettings } from '../../settings/tls.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { ShutdownStack } from '../shutdown-stack.ts'
import type { CertificateOrders } from './acme/certificate-orders.ts'
import { CertificateWatch } from './certificate-watch.ts'

interface Shared {
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
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
    })
    this.#watch.start()
  }

  /** Opens the listener of ACME challenges, if they are in use. Throws SERVER_LISTEN_FAILED. */
  async openOrders(closing: ShutdownStack): Promise<void> {
    closing.add(() => this.stop())
    const { acme: settings, pair } = this.#tls
    if (settings === null) return
    const { openOrders } = await import('./acme/open-orders.ts')
    const onIssued = () => this.#issued()
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

  health(): readonly ComponentHealth[] {
    return this.#orders === null ? [] : [this.#orders.health()]
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#watch?.stop()
    await this.#orders?.stop()
  }

  #issued(): void {
    if (this.#watch === null) this.#pair = readOrderedPair(this.#tls.paths)
    else this.#watch.refresh()
  }
}

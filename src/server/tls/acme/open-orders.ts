/** Opens the listener of challenges, and the orders, of a server that has ACME in its settings. */
import type { AcmeSettings } from '../../../settings/acme.ts'
import type { System } from '../../../system/system.ts'
import type { Logger } from '../../../telemetry/log.ts'
import type { Metrics } from '../../../telemetry/metrics/metrics.ts'
import type { OrderCertificate } from './acme-authority.ts'
import { CertificateOrders, type CertificateOrdersOptions } from './certificate-orders.ts'
import { ChallengeListener } from './challenge-listener.ts'

export interface OpenOrdersOptions extends Pick<CertificateOrdersOptions, 'pair' | 'onIssued'> {
  readonly settings: AcmeSettings
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** Orders a certificate; from the authority of the settings by default. */
  readonly order?: OrderCertificate
}

/** Throws SERVER_LISTEN_FAILED. */
export function openOrders(options: OpenOrdersOptions): CertificateOrders {
  const { settings, log, system } = options
  const { domains, httpListen: listen } = settings
  const challenges = new ChallengeListener({ listen, domains, system, log })
  const message = `ACME challenges on ${challenges.address}`
  log.info('server.listening', {
    message,
    surface: 'acme',
    address: challenges.address,
    tls: false,
  })
  const onStop = () => challenges.stop()
  return new CertificateOrders({ order: orderFromAuthority, ...options, challenges, onStop })
}

/** Loads the library with the first order. */
const orderFromAuthority: OrderCertificate = async (options) => {
  const { orderCertificate } = await import('./acme-authority.ts')
  return orderCertificate(options)
}

/** The time of the next order: renewal, retries, and the budgets that a rate limit asks for. */
import type { CertificatePair } from '../../../settings/tls.ts'
import type { CertificateOrdersFile } from '../../../wire/files/certificate-orders.ts'

const MINUTE_MILLIS = 60_000
const HOUR_MILLIS = 60 * MINUTE_MILLIS
const WEEK_MILLIS = 7 * 24 * HOUR_MILLIS

/**
 * Orders of a week, with those that failed. Public authorities permit 5 for the same names that
 * succeed, and many more that fail.
 * @limit TLS: orders of certificates in a week
 */
export const ORDERS_PER_WEEK_MAX = 24
/**
 * Public authorities permit 5 for one name.
 * @limit TLS: orders of certificates that fail in an hour
 */
export const FAILED_ORDERS_PER_HOUR_MAX = 4
/** Part of the lifetime after which a certificate is renewed. */
const RENEWAL_PART = 2 / 3
/** Part of the lifetime by which a renewal is earlier at most. */
const JITTER_PART = 1 / 30
/** Pause after a failed order, which doubles with each further one. */
export const RETRY_MILLIS_MIN = 5 * MINUTE_MILLIS
export const RETRY_MILLIS_MAX = 12 * HOUR_MILLIS
/** Part of a pause by which it is longer at most. */
const RETRY_JITTER_PART = 1 / 4

export type Validity = Pick<CertificatePair, 'startsAtMillis' | 'endsAtMillis' | 'hosts'>

export interface OrderState {
  /** The certificate in use; null before the first one. */
  readonly certificate: Validity | null
  readonly domains: readonly string[]
  readonly record: Pick<CertificateOrdersFile, 'orders' | 'retryAtMillis'>
  /** Failures in a row since the server started, the last one at `failedAtMillis`. */
  readonly failures: number
  readonly failedAtMillis: number
  /** A random number from 0 to below 1, the same until the next order. */
  readonly jitter: number
}

/** Returns the time of the next order in Unix milliseconds, which may be in the past. */
export function nextOrderMillis(state: OrderState, nowMillis: number): number {
  return Math.max(
    renewalMillis(state),
    retryMillis(state),
    afterBudget(state.record, nowMillis),
    // An authority cannot stop renewals for longer than the certificate could last.
    Math.min(state.record.retryAtMillis, nowMillis + WEEK_MILLIS),
  )
}

/** Returns whether the certificate is for exactly these names. */
export function isFor({ hosts }: Pick<Validity, 'hosts'>, domains: readonly string[]): boolean {
  const covered = new Set(hosts)
  return covered.size === domains.length && domains.every((domain) => covered.has(domain))
}

/** Returns the part of the lifetime that remains; 0 once the certificate has ended. */
export function remainingPart(
  { startsAtMillis, endsAtMillis }: Pick<Validity, 'startsAtMillis' | 'endsAtMillis'>,
  nowMillis: number,
): number {
  const lifetime = Math.max(1, endsAtMillis - startsAtMillis)
  return Math.max(0, endsAtMillis - nowMillis) / lifetime
}

function renewalMillis({ certificate, domains, jitter }: OrderState): number {
  if (certificate === null || !isFor(certificate, domains)) return 0
  const { startsAtMillis, endsAtMillis } = certificate
  return startsAtMillis + (endsAtMillis - startsAtMillis) * (RENEWAL_PART - jitter * JITTER_PART)
}

function retryMillis({ failures, failedAtMillis, jitter }: OrderState): number {
  if (failures === 0) return 0
  const pause = Math.min(RETRY_MILLIS_MAX, RETRY_MILLIS_MIN * 2 ** (failures - 1))
  return failedAtMillis + pause * (1 + jitter * RETRY_JITTER_PART)
}

/**
 * Orders whose time is in the future were recorded by a wrong clock, and do not count. An order
 * that a stop cancelled has not failed; one without an outcome may have.
 */
function afterBudget({ orders }: OrderState['record'], nowMillis: number): number {
  const past = orders.filter(({ atMillis }) => atMillis <= nowMillis)
  const failed = past.filter(({ outcome }) => outcome === 'failed' || outcome === 'pending')
  return Math.max(
    leaving(past, ORDERS_PER_WEEK_MAX, WEEK_MILLIS),
    leaving(failed, FAILED_ORDERS_PER_HOUR_MAX, HOUR_MILLIS),
  )
}

/** Returns when fewer than `most` of the orders are within the period. */
function leaving(
  orders: readonly { readonly atMillis: number }[],
  most: number,
  periodMillis: number,
): number {
  const oldest = orders.at(-most)
  return oldest === undefined ? 0 : oldest.atMillis + periodMillis
}

/** Returns the orders that still count, with another one. */
export function withOrder(
  orders: CertificateOrdersFile['orders'],
  atMillis: number,
): CertificateOrdersFile['orders'] {
  const counted = orders.filter(
    (each) => each.atMillis <= atMillis && each.atMillis > atMillis - WEEK_MILLIS,
  )
  return [...counted, { atMillis, outcome: 'pending' as const }].slice(-ORDERS_PER_WEEK_MAX)
}

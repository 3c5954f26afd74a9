/** The reading of the certificate that the server orders, from the files of the Product root. */
import { readOrderedPair, type TlsSettings } from '../../../settings/tls.ts'
import { readOrders } from '../../tls/acme/acme-files.ts'
import type { CertificateOrdersReading } from '../readings.ts'

/** The settings have ACME; a running server may have ordered since they were read. */
export function readCertificateOrders(
  { paths, acme }: TlsSettings,
  nowMillis: number,
): CertificateOrdersReading {
  const record = readOrders(acme!.directory)
  const failure = record?.directoryUrl === acme!.directoryUrl ? record.failure : null
  const pair = readOrderedPair(paths)
  return {
    failure: failure && {
      reason: failure.reason,
      ageMillis: Math.max(0, nowMillis - failure.atMillis),
    },
    remainingMillis: pair === null ? null : pair.endsAtMillis - nowMillis,
  }
}

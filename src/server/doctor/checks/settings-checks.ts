/** Checks of settings, listeners, proxies and certificates. */
import { check, failed, listed, notRead, ok, skipped, type Verdict, warning } from '../check.ts'
import type {
  CertificateOrdersReading,
  CertificateReading,
  ListenerReading,
  Reading,
  Readings,
} from '../readings.ts'

const HOUR_MILLIS = 3_600_000
const DAY_MILLIS = 24 * HOUR_MILLIS
/** Renewals by ACME run a month before the end: less than two weeks means that they fail. */
const CERTIFICATE_DAYS = 14

export const SETTINGS_VALID = 'settings-valid'

export const SETTINGS_CHECKS = [
  // Without valid settings nothing else can be read: `diagnoseSettings` reports that.
  check({
    name: SETTINGS_VALID,
    why: 'With these settings the server does not start.',
    repair: 'svc docs settings',
    reads: () => ({ value: null }),
    evaluate: () => ok('all settings have the required form'),
  }),
  check({
    name: 'settings-known',
    why: 'A misspelled setting has no effect, and the default is in force without a notice.',
    repair: 'svc docs settings',
    reads: ({ settings }) => settings,
    evaluate: ({ unread }) =>
      unread.length === 0
        ? ok('every variable with a prefix of this server is a setting')
        : warning(`not settings of this server: ${listed(unread)}`),
  }),
  check({
    name: 'settings-deprecated',
    why: 'A later version does not read the deprecated name, and fails to start.',
    repair: 'svc docs settings',
    reads: ({ settings }) => settings,
    evaluate: ({ deprecated }) =>
      deprecated.length === 0
        ? ok('no deprecated name is in use')
        : warning(`in use: ${listed(deprecated)}`),
  }),
  check({
    name: 'secret-files',
    why: 'Every user of this machine can read the secret and act as the server.',
    repair: 'chmod o-r FILE',
    reads: ({ settings }) => settings,
    evaluate: ({ exposed }) =>
      exposed.length === 0
        ? ok('no secret file is readable by every user')
        : warning(
            `readable by every user: the file of ${listed(exposed)}`,
            `chmod o-r "$${exposed[0]}"`,
          ),
  }),
  check({
    name: 'stores-of-root',
    why:
      'The settings name another store than the root records: the server does not start, since ' +
      'it would serve an Environment without its data.',
    repair: 'svc docs settings',
    reads: ({ settings }) => settings,
    evaluate: ({ storeDefect }) =>
      storeDefect === null
        ? ok('documents and files are where the root records them')
        : failed(storeDefect),
  }),
  check({
    name: 'jwt-provider-keys',
    why: 'Tokens of a provider without a usable key are rejected, and its users cannot call.',
    repair: 'svc docs identity',
    reads: ({ settings }) => settings,
    evaluate: ({ jwtDefect }) =>
      jwtDefect === null
        ? ok('the key sets of all providers in the file can be used')
        : failed(jwtDefect),
  }),
  check({
    name: 'management-proxy',
    why:
      'Behind a proxy that is not declared, all operators share one address and so one rate ' +
      'limit.',
    repair: 'export SERVICE_MANAGEMENT_TLS_TERMINATED=true',
    reads: ({ settings }) => settings,
    evaluate: ({ publicUrl, tlsTerminated, endsTls }) => {
      if (endsTls) return ok('this server ends TLS')
      return publicUrl?.startsWith('https:') === true && !tlsTerminated
        ? warning(`${publicUrl} has TLS, which this server does not end`)
        : ok(tlsTerminated ? 'a proxy ends TLS' : 'no proxy is expected')
    },
  }),
  check({
    name: 'management-url',
    why: 'Without a public URL, operators elsewhere link to an address of this machine.',
    repair: 'export SERVICE_PUBLIC_MANAGEMENT_URL=https://HOST',
    reads: ({ settings }) => settings,
    evaluate: ({ publicUrl, tlsTerminated, endsTls }) =>
      (tlsTerminated || endsTls) && publicUrl === null
        ? warning('operators use TLS, but no public URL is set')
        : ok(publicUrl ?? 'no public URL is set, and no proxy needs one'),
  }),
  check({
    name: 'allowed-origins',
    why: 'A page that is delivered without TLS can be replaced on the way, with the key in it.',
    repair: 'export SERVICE_PRODUCT_ALLOWED_ORIGINS=https://HOST',
    reads: ({ settings }) => settings,
    evaluate: ({ plainOrigins }) =>
      plainOrigins.length === 0
        ? ok('every allowed origin has TLS or is of this machine')
        : warning(`without TLS: ${listed(plainOrigins)}`),
  }),
  check({
    name: 'state-directory',
    why: 'The server does not start if it cannot keep owner codes in a directory of its own.',
    repair: 'install -d -m 700 "$SERVICE_STATE_DIRECTORY"',
    reads: ({ stateDirectory }) => stateDirectory,
    evaluate: () => ok('the directory can be used'),
  }),
  listener('management', ({ managementListener }) => managementListener),
  listener('application', ({ applicationListener }) => applicationListener),
  check({
    name: 'public-url',
    why:
      'Operators reach the server by this URL: if something else answers there, they send it ' +
      'their tokens.',
    repair: 'curl -i URL/health/live',
    reads: ({ publicUrl }) => publicUrl,
    unread: notRead,
    evaluate: ({ url, status, isThisProduct }) =>
      isThisProduct
        ? ok(`${url} reaches a server`)
        : failed(`${url} answers ${status}, but not as this server`, `curl -i ${url}/health/live`),
  }),
  check({
    name: 'forwarded-headers',
    why:
      'The last address of X-Forwarded-For is the key of rate limits: without it, or with one ' +
      'that a client chose, limits hit the wrong callers.',
    repair: 'svc docs proxies',
    reads: ({ forwarded }) => forwarded,
    evaluate: ({ tlsTerminated, hasForwardedFor, hops }) => {
      if (tlsTerminated && !hasForwardedFor) {
        return failed('this request came without X-Forwarded-For, which the proxy has to set')
      }
      if (tlsTerminated) {
        return hops === 1
          ? ok('this request came with the address of its client')
          : warning(`this request came with ${hops} addresses; the proxy has to replace the header`)
      }
      return hasForwardedFor
        ? warning('a proxy forwards requests, but SERVICE_MANAGEMENT_TLS_TERMINATED is not set')
        : ok('this request came directly')
    },
  }),
  certificates({
    name: 'tls-public-url',
    settings: ['SERVICE_PUBLIC_MANAGEMENT_URL', 'SERVICE_S3_HOST'],
    why: 'Clients reject a certificate that has ended, and nobody can connect.',
  }),
  certificates({
    name: 'tls-identity-providers',
    settings: ['SERVICE_OIDC_CONFIG_FILE', 'SERVICE_PRODUCT_AUTH_CONFIG'],
    why:
      'Published keys are read over TLS: without a valid certificate, new keys are never ' +
      'accepted.',
  }),
  certificates({
    name: 'tls-file-store',
    settings: ['SERVICE_STORAGE_S3_ENDPOINT'],
    why:
      'Files and segments of the log are kept there: without a valid certificate all transfers ' +
      'fail.',
  }),
  certificates({
    name: 'tls-traces',
    settings: ['OTEL_EXPORTER_OTLP_ENDPOINT'],
    why: 'Traces are lost while the certificate of their collector is not valid.',
  }),
  check({
    name: 'tls-orders',
    why:
      'The server renews its certificate by orders: while they fail, it ends, and clients ' +
      'reject it.',
    repair: 'svc docs proxies',
    reads: ({ certificateOrders }) => certificateOrders,
    evaluate: evaluateOrders,
  }),
  check({
    name: 'file-store',
    why:
      'Uploads and downloads are 503 while the S3-compatible store does not answer with these ' +
      'keys.',
    repair: 'svc docs files',
    reads: ({ fileStore }) => fileStore,
    evaluate: () => ok('the bucket can be listed with the configured keys'),
  }),
] as const

function listener(
  surface: 'management' | 'application',
  reads: (readings: Readings) => Reading<ListenerReading>,
) {
  return check({
    name: `listener-${surface}`,
    why: 'The server does not start if another program has its address.',
    repair: "ss -ltnp 'sport = :PORT'",
    reads,
    evaluate: ({ address, state }) => {
      if (state === 'free') return ok(`${address} is free, since no server runs`)
      if (state === 'serving') return ok(`${address} accepts connections`)
      const command = `ss -ltnp 'sport = :${address.slice(address.lastIndexOf(':') + 1)}'`
      if (state === 'silent') return failed(`a server runs, but not on ${address}`, command)
      return state === 'taken'
        ? failed(`another program has ${address}`, command)
        : failed(`${address} cannot be opened by this user`, command)
    },
  })
}

function certificates({
  name,
  settings,
  why,
}: {
  readonly name: string
  readonly settings: readonly string[]
  readonly why: string
}) {
  return check({
    name,
    why,
    repair: 'openssl s_client -connect HOST:443 -servername HOST </dev/null',
    reads: (readings) => readings.certificates,
    unread: notRead,
    evaluate: (all) =>
      evaluateCertificates(all.filter(({ setting }) => settings.includes(setting))),
  })
}

function evaluateOrders({ failure, remainingMillis }: CertificateOrdersReading): Verdict {
  const hasEnded = remainingMillis === null || remainingMillis <= 0
  if (failure !== null) {
    const hours = Math.floor(failure.ageMillis / HOUR_MILLIS)
    const seen = `the last order failed ${hours} hours ago: ${failure.reason}`
    return hasEnded ? failed(seen) : warning(seen)
  }
  if (remainingMillis === null) return warning('no certificate has been ordered yet')
  if (hasEnded) return failed('the certificate has ended, and no order replaced it')
  const days = Math.floor(remainingMillis / DAY_MILLIS)
  return ok(`the last order did not fail, and its certificate ends in ${days} days`)
}

function evaluateCertificates(found: readonly CertificateReading[]): Verdict {
  const reached = found.filter(({ remainingMillis }) => remainingMillis !== null)
  if (found.length === 0) return skipped('no such origin is configured')
  if (reached.length === 0) {
    return skipped(`cannot be reached from here: ${listed(found.map(({ origin }) => origin))}`)
  }
  const command = (origin: string): string => {
    const { hostname, port } = new URL(origin)
    const address = `${hostname}:${port || '443'}`
    return `openssl s_client -connect ${address} -servername ${hostname} </dev/null`
  }
  const rejected = reached.find(
    ({ rejection, remainingMillis }) => rejection !== null || remainingMillis! <= 0,
  )
  if (rejected !== undefined) {
    const { origin, rejection } = rejected
    return failed(`${origin}: ${rejection ?? 'the certificate has ended'}`, command(origin))
  }
  const first = reached.toSorted((a, b) => a.remainingMillis! - b.remainingMillis!)[0]!
  const days = Math.floor(first.remainingMillis! / DAY_MILLIS)
  const seen = `${first.origin} ends in ${days} days`
  return days < CERTIFICATE_DAYS ? warning(seen, command(first.origin)) : ok(seen)
}

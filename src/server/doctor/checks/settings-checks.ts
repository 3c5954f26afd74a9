/** Checks of settings, listeners, proxies and certificates. */
import { check, failed, listed, notRead, ok, skipped, type Verdict, warning } from '../check.ts'
import type { CertificateReading, ListenerReading, Reading, Readings } from '../readings.ts'

const DAY_MILLIS = 86_400_000
/** Renewals by ACME run a month before the end: less than two weeks means that they fail. */
const CERTIFICATE_DAYS = 14

export const SETTINGS_CHECKS = [
  check({
    name: 'settings-valid',
    why: 'With these settings the server does not start.',
    repair: 'svc-server check',
    reads: ({ configuration }) => configuration,
    judge: () => ok('all settings have the required form'),
  }),
  check({
    name: 'settings-known',
    why: 'A misspelled setting has no effect, and the default is in force without a notice.',
    repair: 'svc docs settings',
    reads: ({ settings }) => settings,
    judge: ({ unread }) =>
      unread.length === 0
        ? ok('every variable with a prefix of this server is a setting')
        : warning(`not settings of this server: ${listed(unread)}`),
  }),
  check({
    name: 'settings-deprecated',
    why: 'A later version does not read the deprecated name, and fails to start.',
    repair: 'svc docs settings',
    reads: ({ settings }) => settings,
    judge: ({ deprecated }) =>
      deprecated.length === 0
        ? ok('no deprecated name is in use')
        : warning(`in use: ${listed(deprecated)}`),
  }),
  check({
    name: 'secret-files',
    why: 'Every user of this machine can read the secret and act as the server.',
    repair: 'chmod o-r FILE',
    reads: ({ settings }) => settings,
    judge: ({ exposed }) =>
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
    repair: 'svc-server check',
    reads: ({ settings }) => settings,
    judge: ({ storeDefect }) =>
      storeDefect === null
        ? ok('documents and files are where the root records them')
        : failed(storeDefect),
  }),
  check({
    name: 'jwt-provider-keys',
    why: 'Tokens of a provider without a usable key are rejected, and its users cannot call.',
    repair: 'svc-server check',
    reads: ({ settings }) => settings,
    judge: ({ jwtDefect }) =>
      jwtDefect === null
        ? ok('the key sets of all providers in the file can be used')
        : failed(jwtDefect),
  }),
  check({
    name: 'management-proxy',
    why:
      'Behind a proxy that is not declared, all operators share one address and so one rate ' +
      'limit.',
    repair: 'SERVICE_MANAGEMENT_TLS_TERMINATED=true',
    reads: ({ settings }) => settings,
    judge: ({ publicUrl, tlsTerminated }) =>
      publicUrl?.startsWith('https:') === true && !tlsTerminated
        ? warning(`${publicUrl} has TLS, which this server does not end`)
        : ok(tlsTerminated ? 'a proxy ends TLS' : 'no proxy is expected'),
  }),
  check({
    name: 'management-url',
    why: 'Without a public URL, operators elsewhere link to an address of this machine.',
    repair: 'SERVICE_PUBLIC_MANAGEMENT_URL=https://HOST',
    reads: ({ settings }) => settings,
    judge: ({ publicUrl, tlsTerminated }) =>
      tlsTerminated && publicUrl === null
        ? warning('a proxy ends TLS, but no public URL is set')
        : ok(publicUrl ?? 'none, and no proxy'),
  }),
  check({
    name: 'allowed-origins',
    why: 'A page that is delivered without TLS can be replaced on the way, with the key in it.',
    repair: 'SERVICE_PRODUCT_ALLOWED_ORIGINS=https://HOST',
    reads: ({ settings }) => settings,
    judge: ({ plainOrigins }) =>
      plainOrigins.length === 0
        ? ok('every allowed origin has TLS or is of this machine')
        : warning(`without TLS: ${listed(plainOrigins)}`),
  }),
  check({
    name: 'state-directory',
    why: 'The server does not start if it cannot keep owner codes in a directory of its own.',
    repair: 'svc-server check',
    reads: ({ stateDirectory }) => stateDirectory,
    judge: () => ok('the directory can be used'),
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
    judge: ({ url, status, isThisProduct }) =>
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
    judge: ({ tlsTerminated, hasForwardedFor, hops }) => {
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
    name: 'file-store',
    why:
      'Uploads and downloads are 503 while the S3-compatible store does not answer with these ' +
      'keys.',
    repair: 'svc-server verify-storage',
    reads: ({ fileStore }) => fileStore,
    judge: () => ok('the bucket can be listed with the configured keys'),
  }),
] as const

function listener(
  surface: 'management' | 'application',
  reads: (readings: Readings) => Reading<ListenerReading>,
) {
  return check({
    name: `listener-${surface}`,
    why: 'The server does not start if another program has its address.',
    repair: 'ss -ltnp',
    reads,
    judge: ({ address, state }) => {
      if (state === 'free') return ok(`${address} is free`)
      if (state === 'serving') return ok(`${address} is served`)
      return state === 'taken'
        ? failed(`${address} belongs to another program, or is not answered`)
        : failed(`${address} cannot be opened by this user`)
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
    repair: 'openssl s_client -connect HOST:443 -servername HOST',
    reads: (readings) => readings.certificates,
    unread: notRead,
    judge: (all) => judgeCertificates(all.filter(({ setting }) => settings.includes(setting))),
  })
}

function judgeCertificates(found: readonly CertificateReading[]): Verdict {
  const reached = found.filter(({ remainingMillis }) => remainingMillis !== null)
  if (found.length === 0) return skipped('no such origin is configured')
  if (reached.length === 0) {
    return skipped(`cannot be reached from here: ${listed(found.map(({ origin }) => origin))}`)
  }
  const command = (origin: string): string => {
    const { hostname, port } = new URL(origin)
    return `openssl s_client -connect ${hostname}:${port || '443'} -servername ${hostname}`
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

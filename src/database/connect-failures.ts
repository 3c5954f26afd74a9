/**
 * Explains why a connection to PostgreSQL cannot be opened: which part of the database URL or of
 * the server is wrong, and what to do. Values of the URL and texts of PostgreSQL are not repeated.
 */
import { DatabaseError } from 'pg'

interface Explanation {
  /** SQLSTATEs of PostgreSQL and error codes of the system. */
  readonly codes: RegExp
  readonly reason: string
}

const EXPLANATIONS: readonly Explanation[] = [
  {
    codes: /^28P01$/,
    reason: 'password: PostgreSQL rejects the user or the password; correct them in the URL',
  },
  {
    codes: /^28000$/,
    reason: 'user: PostgreSQL does not admit this user from here; correct pg_hba.conf or the URL',
  },
  {
    codes: /^3D000$/,
    reason: 'database: PostgreSQL has no database of this name; create it or correct the URL',
  },
  {
    codes: /^42501$/,
    reason: 'permission: this user may not connect or create tables; grant it the permission',
  },
  {
    codes: /^53300$/,
    reason: 'capacity: PostgreSQL has no free connection; raise its max_connections',
  },
  {
    codes: /^57P03$/,
    reason: 'state: PostgreSQL is starting up or shutting down; try again when it is ready',
  },
  {
    codes: /^(?:ENOTFOUND|EAI_AGAIN|EAI_NONAME|ENODATA)$/,
    reason: 'host: the host name cannot be resolved; correct it in the URL',
  },
  {
    codes: /^ECONNREFUSED$/,
    reason: 'host: nothing listens at this host and port; start PostgreSQL or correct the URL',
  },
  {
    codes: /^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/,
    reason: 'host: the host does not respond; correct it in the URL, or check the network',
  },
  {
    codes: /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/,
    reason:
      'TLS: the certificate of PostgreSQL is not trusted or is for another host; correct the ' +
      'host, or name a file of its authority with NODE_EXTRA_CA_CERTS',
  },
]

/** Explanations of failures of node-postgres itself, which have no code. */
const MESSAGES: readonly (readonly [RegExp, string])[] = [
  [
    /does not support SSL/,
    'TLS: PostgreSQL does not support TLS; enable it there, or remove sslmode from the URL',
  ],
  [
    /password must be a (?:non-empty )?string/,
    'password: PostgreSQL requires a password and the URL has none; add it',
  ],
  [/timeout/, 'host: the host does not respond; correct it in the URL, or check the network'],
  [
    /terminated/,
    'host: the connection was closed; check that PostgreSQL listens at this host and port',
  ],
]

const ENCRYPTION_REQUIRED =
  'TLS: PostgreSQL only admits encrypted connections from here; add sslmode=verify-full to the URL'

/** Returns the reason with its SQLSTATE or error code; null for a code that is not known here. */
export function reasonOfCode(code: string): string | null {
  const known = EXPLANATIONS.find(({ codes }) => codes.test(code))
  return known === undefined ? null : `${known.reason} (${code})`
}

/** Returns the reason of a failed connection; null for a failure that is not known here. */
export function connectReason(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  if (error instanceof DatabaseError && /no encryption/.test(error.message)) {
    return `${ENCRYPTION_REQUIRED} (${error.code})`
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null
  if (code !== null) return reasonOfCode(code)
  return MESSAGES.find(([form]) => form.test(error.message))?.[1] ?? null
}

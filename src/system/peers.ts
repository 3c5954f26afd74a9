/** Verification of the peers of TLS connections. */

/**
 * Makes every TLS connection of the process verify its peer: connections of requests, and those to
 * PostgreSQL unless their `sslmode` disables it. Both runtimes read this variable when they
 * connect, so the program calls this function first. Set NODE_EXTRA_CA_CERTS to trust a private
 * authority.
 */
export function requireVerifiedPeers(environment: Record<string, string | undefined>): void {
  delete environment.NODE_TLS_REJECT_UNAUTHORIZED
}

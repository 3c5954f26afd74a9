/** Verification of the peers of TLS connections. */

/**
 * Makes every TLS connection of the process verify its peer: those of requests, and those to
 * PostgreSQL whose `sslmode` does not say otherwise. Both runtimes read this variable when they
 * connect, so the program calls this before it does anything else. A private authority is trusted
 * by NODE_EXTRA_CA_CERTS.
 */
export function requireVerifiedPeers(environment: Record<string, string | undefined>): void {
  delete environment.NODE_TLS_REJECT_UNAUTHORIZED
}

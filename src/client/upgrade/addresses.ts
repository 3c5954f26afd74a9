/** Addresses of releases: an https URL, a directory of this machine, or http of loopback. */
import { fileURLToPath } from 'node:url'
import { literalAddress } from '../../system/guarded-fetch.ts'
import type { ClientEnvironment } from '../environment.ts'
import { resolvePath } from '../roots/roots.ts'
import { usage } from '../usage.ts'

export type Address =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'directory'; readonly path: string }

/** Placeholder of an address that has a directory for each version. */
export const VERSION_MARK = '{version}'

/** Parses an address. Throws CLIENT_USAGE. */
export function parseAddress(
  environment: ClientEnvironment,
  text: string,
  version: string | null,
): Address {
  if (text.includes(VERSION_MARK) && version === null) {
    throw usage(`The address has ${VERSION_MARK}: name the version with --version.`)
  }
  const named = version === null ? text : text.replaceAll(VERSION_MARK, version)
  if (!/^[A-Za-z][A-Za-z0-9+.-]+:/.test(named)) {
    return { kind: 'directory', path: resolvePath(environment, named) }
  }
  const url = URL.canParse(named) ? new URL(named) : null
  if (url?.protocol === 'file:' && url.host === '') {
    return { kind: 'directory', path: fileURLToPath(url) }
  }
  if (url === null || !isPermitted(url) || url.search !== '' || url.hash !== '') {
    throw usage('The address of a release is an https URL without a query, or a directory.')
  }
  return { kind: 'url', url: url.href.replace(/\/+$/, '') }
}

/**
 * Returns whether a release may be read from the URL. Nothing is trusted without its signature, so
 * that http would be safe; it would still tell everybody on the way which version runs.
 */
export function isPermitted(url: URL): boolean {
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:') return true
  const literal = literalAddress(url.hostname)
  return url.protocol === 'http:' && (literal === '127.0.0.1' || literal === '::1')
}

/** Returns the address as people write it. */
export function addressText(address: Address): string {
  return address.kind === 'url' ? address.url : address.path
}

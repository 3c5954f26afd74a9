/**
 * Decides which hosts requests to `svc dev` may name. A page whose name its owner binds to this
 * machine (DNS rebinding) stands at the port of the listener, since it is of the same origin as its
 * requests. Their Host therefore has a name of the public DNS with exactly that port. A tunnel has
 * a public name too, but at a port of its own.
 */
import { hostname } from 'node:os'

/** The port of a Host without one. */
const DEFAULT_PORT = 80
/**
 * Suffixes of names that are made for the own machine and network, and that no registry gives out:
 * RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), and the reservation of ICANN for
 * private use (internal).
 */
const LOCAL_SUFFIXES: readonly string[] = ['localhost', 'local', 'home.arpa', 'internal']
/** A host with an optional port, as RFC 9112 has it: no user, path or list. */
const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s:@/?#\\[\],]+)(?::[0-9]*)?$/i
const ADDRESS = /^(?:\[.+\]|[0-9]+(?:\.[0-9]+){3})$/

/**
 * Returns the rule that the Host of a request to this port breaks; null for one that is accepted.
 * `ownName` is the host name of this machine.
 */
export function hostRule(host: string, port: number, ownName = hostname()): string | null {
  if (isAccepted(host, port, ownName)) return null
  return (
    'an IP address, localhost, or a name of this machine or its network; open ' +
    `http://127.0.0.1:${port} instead`
  )
}

function isAccepted(host: string, port: number, ownName: string): boolean {
  const text = `http://${host}`
  if (!HOST.test(host) || !URL.canParse(text)) return false
  // The parser of URLs reads the text as browsers do: `0x7f.1` is an address, for example.
  const url = new URL(text)
  if (Number(url.port || DEFAULT_PORT) !== port) return true
  return ADDRESS.test(url.hostname) || isLocalName(withoutRoot(url.hostname), ownName)
}

/** Returns whether the name is one that no registry gives out, or that of this machine. */
function isLocalName(name: string, ownName: string): boolean {
  if (name === '') return false
  if (!name.includes('.') || name === withoutRoot(ownName.toLowerCase())) return true
  return LOCAL_SUFFIXES.some((suffix) => name.endsWith(`.${suffix}`))
}

/** Returns the name without the dot of the root of DNS, which may end it. */
function withoutRoot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name
}

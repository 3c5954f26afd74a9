/** Finds the addresses under which other devices of the local network reach this machine. */
import { networkInterfaces } from 'node:os'

/** Returns IPv4 addresses; those of containers and virtual machines come last. */
export function networkAddresses(): string[] {
  const found = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => ({ address, isVirtual: VIRTUAL.test(name) })),
  )
  return found
    .sort((a, b) => Number(a.isVirtual) - Number(b.isVirtual))
    .map(({ address }) => address)
}

const VIRTUAL = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|utun|tun|tap|wg|tailscale)/

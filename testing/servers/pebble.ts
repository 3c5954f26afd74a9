/** Runs Pebble, an ACME authority for tests, and the DNS server that leads every name to here. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selfSigned } from '../certificates.ts'
import { freePort } from './ports.ts'

const PEBBLE = '/usr/bin/pebble'
const DNS = '/usr/bin/pebble-challtestsrv'

/** The reason why tests with Pebble are skipped; null if they run. */
export const NO_PEBBLE = existsSync(PEBBLE) && existsSync(DNS) ? null : 'pebble is not installed'

export interface Pebble {
  readonly directoryUrl: string
  /** The file with the certificate that the directory is trusted by. */
  readonly caFile: string
  /** The port at which Pebble expects challenges. */
  readonly httpPort: number
  /** Returns the root certificate of what this Pebble issues, PEM. */
  root(): Promise<string>
  start(): Promise<void>
  stop(): Promise<void>
  /** Stops everything. */
  dispose(): Promise<void>
}

export interface PebbleOptions {
  /** Lifetime of certificates. */
  readonly seconds?: number
  /** Percentage of nonces that are rejected. */
  readonly rejectedNonces?: number
}

export async function createPebble({
  seconds = 30 * 86_400,
  rejectedNonces = 15,
}: PebbleOptions = {}): Promise<Pebble> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-pebble-'))
  const [listen, management, httpPort, dns, dnsManagement] = await Promise.all(
    Array.from({ length: 5 }, () => freePort()),
  )
  const { certificate, key } = selfSigned('localhost')
  const at = (name: string) => join(directory, name)
  writeFileSync(at('ca.pem'), certificate)
  writeFileSync(at('ca.key'), key)
  const config = {
    listenAddress: `127.0.0.1:${listen}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: at('ca.pem'),
    privateKey: at('ca.key'),
    httpPort,
    tlsPort: 1,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
    certificateValidityPeriod: seconds,
  }
  writeFileSync(at('config.json'), JSON.stringify({ pebble: config }))
  const dnsAddress = `127.0.0.1:${dns}`
  const resolver = spawn(
    DNS,
    ['-dns01', dnsAddress, '-management', `127.0.0.1:${dnsManagement}`].concat([
      '-http01',
      '',
      '-https01',
      '',
      '-tlsalpn01',
      '',
      '-defaultIPv6',
      '',
    ]),
    { stdio: 'ignore' },
  )
  let server: ChildProcess | null = null
  const fetchPebble = (url: string) =>
    fetch(url, { tls: { ca: certificate } } as RequestInit).then((answer) => answer.text())
  const directoryUrl = `https://localhost:${listen}/dir`
  const stop = async () => {
    const running = server
    server = null
    if (running === null) return
    const exited = new Promise((resolve) => running.once('exit', resolve))
    running.kill('SIGKILL')
    await exited
  }
  return {
    directoryUrl,
    caFile: at('ca.pem'),
    httpPort: httpPort!,
    root: () => fetchPebble(`https://localhost:${management}/roots/0`),
    async start() {
      server = spawn(PEBBLE, ['-config', at('config.json'), '-dnsserver', dnsAddress], {
        stdio: 'ignore',
        env: {
          ...process.env,
          PEBBLE_VA_NOSLEEP: '1',
          PEBBLE_WFE_NONCEREJECT: String(rejectedNonces),
        },
      })
      for (;;) {
        const answer = await fetchPebble(directoryUrl).catch(() => '')
        if (answer.includes('newOrder')) return
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    stop,
    async dispose() {
      await stop()
      resolver.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

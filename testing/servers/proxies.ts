/**
 * Runs the proxies that operators put before svc-server, as installed here, with the configuration
 * files that ship. Only ports, certificates and file names are replaced.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { selfSigned } from '../certificates.ts'
import { freePort } from './ports.ts'
import { type Supervised, superviseProcess } from './supervisor.ts'

export const MANAGEMENT_HOST = 'manage.example.com'
export const APPLICATION_HOST = 'api.example.com'

export interface RunningProxy {
  /** The port on 127.0.0.1, where both hosts are served over TLS. */
  readonly port: number
  /** PEM of the authority that clients have to trust. */
  readonly authority: string
  /** Lines of its access log; empty for a proxy that keeps none as shipped. */
  accessLog(): string
  stop(): Promise<void>
}

export interface ProxyKind {
  readonly name: string
  readonly executable: string
  readonly installed: boolean
  /** Resolves once the proxy accepts connections. The addresses are host:port of both listeners. */
  start(upstream: {
    readonly management: string
    readonly application: string
    /** Directives in the http block of nginx, beside those that ship; none by default. */
    readonly directives?: string
  }): Promise<RunningProxy>
}

const CONFIGURATIONS = join(import.meta.dirname, '../../dist-config')
const ACCESS_LOG = 'access.log'
const START_MS_MAX = 120_000
const POLL_MS = 50

interface Prepared {
  readonly directory: string
  readonly port: number
  /** The shipped file, with the upstream addresses of this run. */
  readonly configuration: string
  readonly directives: string
}

interface Startable {
  /** Arguments that start the proxy in its directory. */
  readonly command: readonly string[]
  /** Path of the PEM of its authority, once it runs. */
  readonly authority: string
}

function proxyKind(
  name: string,
  executable: string,
  file: string,
  prepare: (prepared: Prepared) => Startable,
): ProxyKind {
  return {
    name,
    executable,
    installed: existsSync(executable),
    async start({ management, application, directives = '' }) {
      const directory = mkdtempSync(join(tmpdir(), `svc-${name}-`))
      const port = await freePort()
      const configuration = readFileSync(join(CONFIGURATIONS, file), 'utf8')
        .replaceAll('127.0.0.1:3220', management)
        .replaceAll('127.0.0.1:3210', application)
      const { command, authority } = prepare({ directory, port, configuration, directives })
      const supervised = superviseProcess([executable, ...command], {
        signal: 'TERM',
        directory,
        environment: { HOME: directory, PATH: process.env.PATH ?? '' },
      })
      const stop = async (): Promise<void> => {
        await supervised.stop()
        rmSync(directory, { recursive: true, force: true })
      }
      try {
        await untilOpen(supervised, port)
      } catch (error) {
        await stop()
        throw error
      }
      const log = join(directory, ACCESS_LOG)
      const accessLog = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
      return { port, authority: readFileSync(authority, 'utf8'), accessLog, stop }
    },
  }
}

/** nginx includes the configuration of a server in that of the process. */
export const NGINX: ProxyKind = proxyKind(
  'nginx',
  '/usr/sbin/nginx',
  'nginx.conf',
  ({ directory, port, configuration, directives }) => {
    const { certificate, key } = selfSigned(MANAGEMENT_HOST, APPLICATION_HOST)
    const within = (file: string): string => join(directory, file)
    writeFileSync(within('certificate.pem'), certificate)
    writeFileSync(within('key.pem'), key, { mode: 0o600 })
    const served = configuration
      .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
      .replaceAll(/\/etc\/ssl\/\S+\.pem/g, within('certificate.pem'))
      .replaceAll(/\/etc\/ssl\/\S+\.key/g, within('key.pem'))
    writeFileSync(within('svc.conf'), served)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${within(name)};`,
    )
    const http = ['access_log', within(ACCESS_LOG)].join(' ')
    const process = [
      // Its workers could not enter the directory as another user.
      ...(isRoot() ? ['user root;'] : []),
      `pid ${within('nginx.pid')};`,
      'daemon off;',
      'error_log stderr warn;',
      'events {}',
      `http { ${http}; ${directives} ${temporary.join(' ')} include ${within('svc.conf')}; }`,
    ]
    writeFileSync(within('nginx.conf'), `${process.join('\n')}\n`)
    const command = ['-e', 'stderr', '-p', directory, '-c', within('nginx.conf')]
    return { command, authority: within('certificate.pem') }
  },
)

/** Caddy creates its own certificates, with an authority that no other program trusts. */
export const CADDY: ProxyKind = proxyKind(
  'caddy',
  '/usr/bin/caddy',
  'Caddyfile',
  ({ directory, port, configuration }) => {
    mkdirSync(join(directory, 'storage'))
    const options = [
      'admin off',
      'auto_https disable_redirects',
      'default_bind 127.0.0.1',
      `https_port ${port}`,
      'local_certs',
      'skip_install_trust',
      `storage file_system ${join(directory, 'storage')}`,
    ]
    const file = join(directory, 'Caddyfile')
    writeFileSync(file, `{\n\t${options.join('\n\t')}\n}\n${configuration}`)
    return {
      command: ['run', '--adapter', 'caddyfile', '--config', file],
      authority: join(directory, 'storage/pki/authorities/local/root.crt'),
    }
  },
)

function isRoot(): boolean {
  return process.getuid?.() === 0
}

async function untilOpen({ stderr, stdout, ended }: Supervised, port: number): Promise<void> {
  let [output, status] = ['', null as number | null]
  for (const stream of [stderr, stdout]) {
    stream.on('data', (text: string) => {
      output += text
    })
  }
  void ended.then((code) => {
    status = code
  })
  const deadline = Date.now() + START_MS_MAX
  while (Date.now() < deadline && status === null) {
    if ((await negotiateProtocol(port)) !== null) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`the proxy did not start (status ${status}):\n${output}`)
}

/** Returns the protocol negotiated from HTTP/2 and 1.1; null if the connection fails. */
export function negotiateProtocol(port: number): Promise<string | false | null> {
  return new Promise((resolve) => {
    const socket = connect({
      host: '127.0.0.1',
      port,
      servername: MANAGEMENT_HOST,
      ALPNProtocols: ['h2', 'http/1.1'],
      rejectUnauthorized: false,
    })
    socket.once('secureConnect', () => {
      resolve(socket.alpnProtocol)
      socket.destroy()
    })
    socket.once('error', () => resolve(null))
    socket.once('close', () => resolve(null))
  })
}

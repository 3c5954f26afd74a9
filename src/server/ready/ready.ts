/**
 * `svc-server ready`: asks the running server of these settings whether it serves, as the health
 * check of a container does that has no other program. It changes nothing.
 */
import { Fault } from '../../errors/fault.ts'
import { formatListener, type Listener } from '../../settings/addresses.ts'
import { parseSettings, type ServerSettings } from '../../settings/settings.ts'
import { invalid } from '../../settings/sources.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'

/** Less than the time limit of the health check in the image, so that the reason is printed. */
const TIMEOUT_MS = 8_000

interface Probe {
  readonly name: string
  readonly listen: Listener
  readonly tls: boolean
  readonly path: string
}

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const probes = probesOf(parseSettings(environment, 'check'))
  for (const { name, listen } of probes) {
    if (listen.port === 0) throw invalid(name, 'a fixed port, which `svc-server ready` can ask')
  }
  await Promise.all(probes.map(ask))
  io.out('The server is ready.\n')
  return 0
}

function probesOf({ management, product }: ServerSettings): Probe[] {
  const probes: Probe[] = [
    {
      name: 'SERVICE_MANAGEMENT_LISTEN',
      listen: management.listen,
      tls: management.endsTls,
      path: '/health/ready',
    },
  ]
  if (product?.applicationListen != null) {
    probes.push({
      name: 'SERVICE_APPLICATION_LISTEN',
      listen: product.applicationListen,
      tls: product.applicationEndsTls,
      // Without a Release nothing is ready for applications, and the server is well all the same.
      path: '/healthz',
    })
  }
  return probes
}

/** Throws SERVER_NOT_READY with the reason. */
async function ask({ name, listen, tls, path }: Probe): Promise<void> {
  const origin = `${tls ? 'https' : 'http'}://${formatListener(reachable(listen))}`
  let reason: string
  try {
    const { status } = await fetch(origin + path, {
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      // The certificate names the public host, and the connection stays on this machine.
      tls: { rejectUnauthorized: false },
    })
    if (status === 200) return
    reason = `${path} answered ${status}`
  } catch (error) {
    reason = error instanceof DOMException ? 'no response in time' : 'no connection'
  }
  throw new Fault('SERVER_NOT_READY', { detail: `${name}: ${reason}` })
}

/** An unspecified address is reached at the loopback address of its family. */
function reachable({ host, port }: Listener): Pick<Listener, 'host' | 'port'> {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port }
  return { host: host === '::' ? '::1' : host, port }
}

/** Opens the address of `svc dev`: on this machine, or on the local network too. */
import { isFault } from '../../errors/fault.ts'
import { APPLICATION_CODES } from '../../http/errors.ts'
import { Admission } from '../../server/admission.ts'
import { type OpenListener, openListener } from '../../server/listeners.ts'
import type { LocalOptions } from './local-environments.ts'
import { hostRule } from './request-hosts.ts'

export interface LocalListener {
  readonly admission: Admission
  /** Origin for applications on this machine. */
  readonly url: string
  /** Origins for other devices; empty if only this machine has access. */
  readonly networkUrls: readonly string[]
}

const HOST = '127.0.0.1'
const EVERY_HOST = '0.0.0.0'

/**
 * Opens the address; requests wait until the admission opens. Without a `port` it uses `preferred`,
 * or any other one if that is in use. Throws SERVER_LISTEN_FAILED.
 */
export function openLocalListener(
  {
    system,
    log,
    closing,
    networkAddresses,
  }: Pick<LocalOptions, 'system' | 'log' | 'closing' | 'networkAddresses'>,
  { port, preferred }: { readonly port: number | null; readonly preferred: number },
): LocalListener {
  const isLocal = networkAddresses.length === 0
  const probes = { live: '/healthz', ready: '/readyz' }
  const admission = new Admission({
    codes: APPLICATION_CODES,
    system,
    probes,
    onAnswer: () => undefined,
  })
  const bind = (wanted: number): OpenListener =>
    openListener({
      surface: 'application',
      app: admission,
      codes: APPLICATION_CODES,
      system,
      log,
      listen: { host: isLocal ? HOST : EVERY_HOST, port: wanted, loopback: isLocal },
      tlsTerminated: false,
      hostRule,
    })
  const listener = port === null ? bindNear(bind, preferred) : bind(port)
  closing.add(() => {
    admission.drain()
    listener.cut()
  })
  const bound = listener.address.split(':').at(-1)
  const urlOf = (host: string): string => `http://${host}:${bound}`
  return { admission, url: urlOf(HOST), networkUrls: networkAddresses.map(urlOf) }
}

function bindNear(bind: (port: number) => OpenListener, preferred: number): OpenListener {
  try {
    return bind(preferred)
  } catch (error) {
    if (!isFault(error, 'SERVER_LISTEN_FAILED')) throw error
    return bind(0)
  }
}

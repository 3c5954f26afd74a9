/**
 * Reads the files of the certificate once they changed, and passes on another certificate. It
 * compares names, not open files: programs that renew certificates replace files, symbolic links
 * or the directory that a link leads through.
 */
import {
  type CertificatePair,
  type CertificatePaths,
  readCertificatePair,
} from '../../settings/tls.ts'
import { stateOfPath } from '../../system/certificates.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'

/** @limit Requests: interval at which the server looks for a new certificate */
export const CERTIFICATE_CHECK_MILLIS = 5_000
/** Programs renew certificates earlier, so one that ends sooner has been forgotten. */
const WARNING_MILLIS = 14 * 86_400_000

export interface CertificateWatchOptions {
  readonly paths: CertificatePaths
  /** The certificate in use. The files may have another one by now, or be damaged. */
  readonly pair: CertificatePair
  readonly system: Pick<System, 'nowMillis'>
  /** Null where another process logs what comes of the same files. */
  readonly log: Logger | null
  /**
   * Writes files again that cannot be used, with the newest certificate that is known, and returns
   * whether it did. Once it has, it is called again only after the files could be read. Default:
   * does nothing.
   */
  readonly rewrite?: (pair: CertificatePair) => boolean
  /** Reads the files; `readCertificatePair` by default. */
  readonly read?: (paths: CertificatePaths) => CertificatePair
  /** Uses a certificate. It may throw, and is called again with the same one then. */
  readonly onCertificate: (pair: CertificatePair) => void
}

export class CertificateWatch {
  readonly #options: CertificateWatchOptions
  #pair: CertificatePair
  /** The state of both files that was read last; null before. */
  #read: string | null = null
  /** The state whose reading failed last. It is read again: the failure may be of the moment. */
  #rejected: string | null = null
  #seen: string
  #isRewritten = false
  /** A certificate of the files that could not be used yet. */
  #unused: CertificatePair | null = null
  #timer: ReturnType<typeof setInterval> | null = null

  constructor(options: CertificateWatchOptions) {
    this.#options = options
    this.#pair = options.pair
    this.#seen = this.#state()
    this.#warnOfEnd()
  }

  get pair(): CertificatePair {
    return this.#pair
  }

  /** Microseconds until the certificate ends; 0 once it has ended. */
  get remainingMicros(): number {
    const { system } = this.#options
    return Math.max(0, this.#pair.endsAtMillis - system.nowMillis()) * 1000
  }

  /** True while the files cannot be read, or their certificate cannot be used yet. */
  get isBehind(): boolean {
    return this.#rejected !== null || this.#unused !== null
  }

  start(): void {
    this.#timer = setInterval(() => this.check(), CERTIFICATE_CHECK_MILLIS)
    this.#timer.unref()
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  /**
   * Reads files that changed, and stayed the same since the check before: between the change of the
   * certificate and that of its key, both do not fit.
   */
  check(): void {
    const state = this.#state()
    const isSettled = state === this.#seen
    this.#seen = state
    const isRead = isSettled && state !== this.#read && this.#readFiles(state)
    if (!isRead && this.#unused !== null) this.#use(this.#unused)
  }

  /** Uses a certificate that this process has written, in any state of its file. */
  offer(pair: CertificatePair): void {
    this.#seen = this.#state()
    this.#useAnother(pair)
  }

  /** Returns whether the files could be read. */
  #readFiles(state: string): boolean {
    const { log, paths, read = readCertificatePair, rewrite } = this.#options
    let pair: CertificatePair
    try {
      pair = read(paths)
    } catch (error) {
      const message =
        'The files of the certificate changed, but cannot be used. The certificate in use stays.'
      if (state !== this.#rejected) log?.error('server.certificate_rejected', { message, error })
      this.#rejected = state
      this.#isRewritten ||= rewrite?.(this.#unused ?? this.#pair) === true
      return false
    }
    this.#read = state
    this.#rejected = null
    this.#isRewritten = false
    this.#useAnother(pair)
    return true
  }

  #useAnother(pair: CertificatePair): void {
    const unused = this.#unused
    // Listeners that use a certificate already know it by its identity.
    if (unused !== null && isSame(pair, unused)) this.#use(unused)
    else {
      this.#unused = null
      if (!isSame(pair, this.#pair)) this.#use(pair)
    }
  }

  /** A failure may be one of the moment, such as of descriptors, so the next check tries again. */
  #use(pair: CertificatePair): void {
    const { log, onCertificate } = this.#options
    const { names } = pair
    try {
      onCertificate(pair)
    } catch (error) {
      const message = `The new certificate of ${names} is not in use yet. It is tried again.`
      if (this.#unused === null) log?.error('server.certificate_delayed', { message, error })
      this.#unused = pair
      return
    }
    this.#unused = null
    this.#pair = pair
    const endsAt = new Date(pair.endsAtMillis).toISOString()
    const message = `New connections get the certificate of ${names}, until ${endsAt}.`
    log?.info('server.certificate_replaced', { message, names, endsAt })
    this.#warnOfEnd()
  }

  #warnOfEnd(): void {
    const { log, system } = this.#options
    const { endsAtMillis, names } = this.#pair
    if (endsAtMillis - system.nowMillis() > WARNING_MILLIS) return
    const endsAt = new Date(endsAtMillis).toISOString()
    const message = `The certificate of ${names} ends at ${endsAt}. Renew it.`
    log?.warn('server.certificate_ends', { message, names, endsAt })
  }

  #state(): string {
    const { certificate, key } = this.#options.paths
    return `${stateOfPath(certificate)}\n${stateOfPath(key)}`
  }
}

function isSame(one: CertificatePair, other: CertificatePair): boolean {
  return one.certificate === other.certificate && one.key.reveal() === other.key.reveal()
}

/**
 * Admits the requests of one listener. Its address opens before the stores and closes after them:
 * requests wait while the server starts, and are rejected with a retry time while it stops. Probes
 * are answered at once in both phases.
 */
import { Fault } from '../errors/fault.ts'
import type { ApplicationBinding } from '../http/application/incoming.ts'
import { errorResponse, type SurfaceCodes } from '../http/errors.ts'
import { probeResponse } from '../http/probes.ts'
import type { System } from '../system/system.ts'
import type { ListenerApp } from './listeners.ts'

export interface AdmissionOptions {
  readonly codes: SurfaceCodes
  readonly system: System
  /** Paths of the probes. */
  readonly probes: { readonly live: string; readonly ready: string }
  /** Called with each response that is made here instead of by the application. */
  readonly onAnswer: (response: Response, origin: string | null) => void
  /** Default: WAITING_MILLIS_MAX. */
  readonly waitingMillisMax?: number
  /** Default: WAITING_MAX. */
  readonly waitingMax?: number
}

/**
 * Time limit for requests that wait for the start: longer than a start takes, and shorter than the
 * 30 s after which clients and proxies give up.
 */
const WAITING_MILLIS_MAX = 10_000
/**
 * Bound of the requests that wait: two seconds at 500 requests a second. Their bodies are not read
 * meanwhile, so that they hold little memory.
 */
const WAITING_MAX = 1_000

export class Admission implements ListenerApp {
  readonly #options: AdmissionOptions
  /** Resolves when the server has started or is stopping. */
  readonly #decided = Promise.withResolvers<void>()
  #phase: 'starting' | 'open' | 'draining' = 'starting'
  #app: ListenerApp | null = null
  #waiting = 0

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** Passes waiting and later requests to the application. */
  open(app: ListenerApp): void {
    this.#app = app
    this.#phase = 'open'
    this.#decided.resolve()
  }

  /** Rejects waiting and later requests. */
  drain(): void {
    this.#phase = 'draining'
    this.#decided.resolve()
  }

  fetch(request: Request, binding: ApplicationBinding): Response | Promise<Response> {
    if (this.#phase === 'open') return this.#app!.fetch(request, binding)
    return this.#answer(request, binding)
  }

  answersHead(request: Request): boolean {
    return this.#phase === 'open' && this.#app?.answersHead?.(request) === true
  }

  reject(binding: ApplicationBinding, fault: Fault): Response {
    return this.#app?.reject?.(binding, fault) ?? this.#failure(fault, null)
  }

  async #answer(request: Request, binding: ApplicationBinding): Promise<Response> {
    const probe = this.#probe(request)
    if (probe !== null) return probe
    if (this.#phase === 'starting') await this.#wait(request.signal)
    if (this.#phase === 'open' && !request.signal.aborted) return this.#app!.fetch(request, binding)
    const detail = `the server is ${this.#phase}`
    const fault = new Fault(this.#options.codes.unavailable, { detail })
    return this.#failure(fault, request.headers.get('origin'))
  }

  /** Resolves when the phase changes, at the time limit, or when the client disconnects. */
  async #wait(signal: AbortSignal): Promise<void> {
    const { waitingMillisMax = WAITING_MILLIS_MAX, waitingMax = WAITING_MAX } = this.#options
    if (this.#waiting >= waitingMax) return
    const ended = Promise.withResolvers<void>()
    const timer = setTimeout(ended.resolve, waitingMillisMax)
    signal.addEventListener('abort', () => ended.resolve(), { once: true })
    this.#waiting += 1
    await Promise.race([this.#decided.promise, ended.promise])
    this.#waiting -= 1
    clearTimeout(timer)
  }

  #probe({ method, url }: Request): Response | null {
    if (method !== 'GET') return null
    const { system, onAnswer, probes } = this.#options
    const { live, ready } = probes
    const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
    if (path !== live && path !== ready) return null
    const response = probeResponse(system.ids.make('req'), path === live ? 'live' : 'unavailable')
    onAnswer(response, null)
    return response
  }

  #failure(fault: Fault, origin: string | null): Response {
    const { codes, system, onAnswer } = this.#options
    const response = errorResponse(fault, system.ids.make('req'), codes)
    onAnswer(response, origin)
    return response
  }
}

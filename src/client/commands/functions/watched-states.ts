/** Follows the states of one Query over a Realtime connection, which is made again when lost. */
import { backoffMillis, CONNECTION_BACKOFF } from '../../../app-client/backoff.ts'
import { readErrorFields } from '../../../app-client/calls/responses.ts'
import { Tokens } from '../../../app-client/calls/tokens.ts'
import { type CallError, responseInvalid } from '../../../app-client/errors.ts'
import { Connection, type Message } from '../../../app-client/live/connection.ts'
import { type ReceivedState, StateReader } from '../../../app-client/live/state-reader.ts'
import { type Platform, standardPlatform } from '../../../app-client/platform.ts'
import type { Code } from '../../../errors/codes.ts'
import { Fault, isFault } from '../../../errors/fault.ts'
import type { Kind } from '../../../errors/kinds.ts'
import type { Secret } from '../../../value/secret.ts'
import type { Json } from '../../../value/strict-json.ts'
import type { Context } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { ConnectFailure } from '../../network/connections.ts'
import { openWebSocket } from '../../network/web-sockets.ts'

export interface WatchedCall {
  readonly origin: string
  readonly key: Secret
  readonly token: Secret | null
  readonly target: string
  readonly name: string
  /** Tagged JSON. */
  readonly arguments: Json
  /** Kinds of the errors that the Function declares, by their names without `APP_`. */
  readonly errors: Readonly<Record<string, string>>
}

export interface State extends ReceivedState {
  readonly releaseId: string
}

export interface Listener {
  /** A rejection ends the command. */
  onState(state: State): Promise<void>
  /** The connection is lost, for the reason, or is there again (null). */
  onOutage(reason: string | null): void
}

const SCOPES_NEXT =
  'Use a key whose scopes include realtime and query; `svc clients list` shows the scopes of ' +
  'each Application Client.'
const UPGRADE_NEXT =
  'Check that the proxies before the server pass on WebSockets, and that the server has Realtime.'
const REJECTED = /Unexpected server response: (4[0-9]{2})/

/** The variable cannot change while the command runs, so a rejected token stays rejected. */
class FixedToken extends Tokens {
  override get canRefresh(): boolean {
    return false
  }
}

/**
 * Calls the listener until the command is interrupted. Faults: the code that ends the subscription
 * or the connection, CLIENT_SERVER_UNREACHABLE only where the first connection cannot succeed,
 * CLIENT_INTERRUPTED.
 */
export async function followStates(
  context: Context,
  call: WatchedCall,
  listener: Listener,
): Promise<never> {
  const { signal } = context
  let watch: Watch | undefined
  try {
    return await new Promise<never>((_, reject) => {
      const interrupt = (): void => reject(new Fault('CLIENT_INTERRUPTED'))
      if (signal.aborted) return interrupt()
      signal.addEventListener('abort', interrupt, { once: true })
      watch = new Watch(context, call, listener, reject)
      watch.open()
    })
  } finally {
    watch?.close()
  }
}

class Watch {
  readonly #call: WatchedCall
  readonly #listener: Listener
  readonly #end: (error: unknown) => void
  readonly #platform: Platform
  readonly #connection: Connection
  #subscriptions = 0
  #reader = new StateReader()
  /** Failures of the subscription one after the other. */
  #failures = 0
  #cancelRetry: () => void = () => undefined
  #wasConnected = false
  #isOut = false
  #reason: string | null = null

  constructor(
    context: Context,
    call: WatchedCall,
    listener: Listener,
    end: (error: unknown) => void,
  ) {
    this.#call = call
    this.#listener = listener
    this.#end = end
    this.#platform = {
      ...standardPlatform(),
      openSocket: (url, protocols) => this.#openSocket(context, url, protocols),
    }
    this.#connection = new Connection({
      platform: this.#platform,
      url: call.origin,
      applicationKey: call.key.reveal(),
      tokens: new FixedToken(() => call.token?.reveal() ?? null),
      onReady: () => this.#subscribe(),
      onMessage: (message) => this.#receive(message),
      onFailed: (error) => end(this.#connectionFault(error)),
      onChange: () => this.#changed(),
    })
  }

  open(): void {
    this.#connection.open()
  }

  close(): void {
    this.#cancelRetry()
    this.#connection.close()
  }

  async #openSocket(context: Context, url: string, protocols: string | string[]) {
    const { environment, signal } = context
    try {
      const onFailure = (reason: string): void => this.#rejected(reason)
      return await openWebSocket(environment, url, protocols, { signal, onFailure })
    } catch (error) {
      if (isFault(error)) this.#end(error)
      if (error instanceof ConnectFailure) {
        this.#reason = error.message
        if (error.isLasting) this.#neverConnected(error.message)
      }
      throw error
    }
  }

  /** The WebSocket failed, perhaps because the server answered without an upgrade. */
  #rejected(reason: string): void {
    this.#reason = reason
    const status = REJECTED.exec(reason)?.[1]
    if (status !== undefined) this.#neverConnected(`HTTP ${status}, no WebSocket`, UPGRADE_NEXT)
  }

  /** Ends the command if no connection was ever there; a later failure may pass. */
  #neverConnected(reason: string, next: string | null = null): void {
    if (this.#wasConnected) return
    const detail = `${this.#call.origin}: ${reason}.`
    this.#end(new Fault('CLIENT_SERVER_UNREACHABLE', { detail, cause: explanation({ next }) }))
  }

  #changed(): void {
    const { status, error } = this.#connection
    if (status === 'connected') {
      this.#wasConnected = true
      this.#reason = null
      if (this.#isOut) this.#listener.onOutage(null)
      this.#isOut = false
    } else if (status === 'waiting' && !this.#isOut) {
      this.#isOut = true
      const code = error === null || error.code === 'CLIENT_SERVER_UNREACHABLE' ? null : error.code
      this.#listener.onOutage(code ?? this.#reason ?? 'the connection was lost')
    }
  }

  #subscribe(): void {
    this.#cancelRetry()
    this.#reader = new StateReader()
    this.#connection.send({
      type: 'subscribe',
      subscriptionId: `s${++this.#subscriptions}`,
      target: this.#call.target,
      function: this.#call.name,
      arguments: this.#call.arguments,
    })
  }

  #receive(message: Message): void {
    const isCurrent = message.subscriptionId === `s${this.#subscriptions}`
    if (message.type === 'error') {
      if (isCurrent) this.#ended(message.error)
    } else if (message.type === 'state') {
      if (isCurrent) this.#received(message)
    } else if (!['pong', 'resync_required', 'unsubscribed'].includes(message.type)) {
      throw responseInvalid('a message of an unknown type')
    }
  }

  #received(message: Message): void {
    const state = this.#reader.read(message)
    if (state === null) return
    this.#failures = 0
    const { releaseId } = message
    this.#listener.onState({ ...state, releaseId: String(releaseId) }).catch(this.#end)
  }

  #ended(fields: unknown): void {
    const error = readErrorFields(fields, null)
    if (error === null) throw responseInvalid('an unknown error')
    if (!error.retryable) {
      this.#end(this.#faultOf(error, null))
      return
    }
    this.#failures += 1
    const millis = backoffMillis(CONNECTION_BACKOFF, this.#failures, this.#platform)
    this.#cancelRetry = this.#platform.after(millis, () => {
      if (this.#connection.isReady) this.#subscribe()
    })
  }

  #connectionFault(error: CallError): Fault {
    return this.#faultOf(error, error.code === 'AUTH_POLICY_DENIED' ? SCOPES_NEXT : null)
  }

  #faultOf({ code, message }: CallError, next: string | null): Fault {
    const kind = this.#call.errors[code.replace(/^APP_/, '')] as Kind | undefined
    return new Fault(code as Code, {
      kind: kind ?? 'internal',
      cause: explanation({ message, next }),
    })
  }
}

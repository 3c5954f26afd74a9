/** The runtime that the client runs in: clock, randomness, network, page events. */

/** The part of a WebSocket that the client uses. */
export interface Socket {
  /** The subprotocol that the server has selected; read once the connection is open. */
  readonly protocol?: string | undefined
  onopen: (() => void) | null
  onmessage: ((event: { readonly data: unknown }) => void) | null
  onclose: ((event: { readonly code: number }) => void) | null
  onerror: (() => void) | null
  send(text: string): void
  close(code?: number): void
}

export interface Platform {
  /** Unix milliseconds. */
  nowMillis(): number
  /** Calls `task` once after the time. Returns a function that cancels it. */
  after(millis: number, task: () => void): () => void
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
  randomBytes(length: number): Uint8Array
  fetch(url: string, init: RequestInit): Promise<Response>
  /** Starts a connection as `WebSocket` does. Rejects if the runtime has no WebSocket. */
  openSocket(url: string, protocols: string | string[]): Promise<Socket>
  /** Calls `task` when the network or the page is back. Returns a function that removes it. */
  onWake(task: () => void): () => void
  /** Calls `task` when the network is lost. Returns a function that removes it. */
  onOffline(task: () => void): () => void
}

/** Loads a WebSocket class for a runtime without one. */
export type LoadSocket = () => Promise<new (url: string, protocols: string | string[]) => unknown>

export function standardPlatform(loadSocket?: LoadSocket): Platform {
  return {
    nowMillis: () => Date.now(),
    after(millis, task) {
      const timer = setTimeout(task, millis)
      return () => clearTimeout(timer)
    },
    random: () => Math.random(),
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    fetch: (url, init) => fetch(url, init),
    async openSocket(url, protocols) {
      const Implementation = globalThis.WebSocket ?? (await loadSocket?.())
      return new Implementation(url, protocols) as unknown as Socket
    },
    onWake,
    onOffline: (task) => onEvents(['offline'], task),
  }
}

const WAKE_EVENTS = ['online', 'pageshow', 'visibilitychange']

function onWake(task: () => void): () => void {
  return onEvents(WAKE_EVENTS, () => {
    if (globalThis.document?.visibilityState !== 'hidden') task()
  })
}

function onEvents(events: readonly string[], task: () => void): () => void {
  // React Native and Node have no page events; their applications call reconnectNow().
  if (typeof globalThis.addEventListener !== 'function') return () => undefined
  for (const event of events) globalThis.addEventListener(event, task)
  return () => {
    for (const event of events) globalThis.removeEventListener(event, task)
  }
}

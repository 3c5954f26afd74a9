/** The port between the listener and the WebSocket protocols that it serves. */

/** Close codes (RFC 6455, 7.4). `noCloseFrame` is reported and never sent. */
export const CLOSE = {
  goingAway: 1001,
  unsupported: 1003,
  policy: 1008,
  noCloseFrame: 1006,
} as const

/** One open WebSocket, as the protocol uses it. */
export interface Socket {
  /**
   * Sends a text message. Returns false if the buffer of the socket is full: the message is in
   * the buffer, and no further one may follow before `drained` is called. With `compresses` the
   * message is compressed if the peer has offered that.
   */
  send(text: string, compresses: boolean): boolean
  ping(): void
  /** Sends a close frame; no message follows. */
  close(code: number, reason: string): void
  /** Ends the connection without a close frame. */
  cut(): void
}

/** The handlers of one WebSocket, which the protocol provides. No method may throw. */
export interface SocketSession {
  opened(socket: Socket): void
  /** Receives a message; null for a binary one. */
  message(text: string | null): void
  /** Reports that a control frame arrived. */
  heard(): void
  /** Reports that the buffer of the socket has room again. */
  drained(): void
  closed(code: number): void
}

/** An accepted upgrade: the headers of the response 101, and the session to open. */
export interface Upgrade {
  readonly headers: Readonly<Record<string, string>>
  readonly session: SocketSession
}

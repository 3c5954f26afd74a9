/** The streams that a mode of the server prints to; tests bring their own. */

export interface ServerIo {
  /** Standard output: what was asked for. */
  readonly out: (text: string) => void
  /** Standard error: failures and, in `serve`, the log. Calls `onLost` if it cannot write it. */
  readonly err: (text: string, onLost?: () => void) => void
  readonly errIsTerminal: boolean
}

/** The environment of the process, handed over by main.ts. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** One mode of `svc-server`; answers the exit code. A Fault may be thrown: the caller prints it. */
export type Mode = (
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
) => Promise<number>

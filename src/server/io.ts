/** The streams that a mode of the server prints to; tests replace them. */

export interface ServerIo {
  /** Standard output: the result of the mode. */
  readonly out: (text: string) => void
  /** Standard error: failures and, in `serve`, the log. Calls `onLost` if it cannot write it. */
  readonly err: (text: string, onLost?: () => void) => void
  readonly errIsTerminal: boolean
}

/** The environment of the process, handed over by main.ts. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** One mode of `svc-server`. Returns the exit code; the caller prints a Fault that it throws. */
export type Mode = (
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
) => Promise<number>

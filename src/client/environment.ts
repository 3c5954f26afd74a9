/**
 * The environment that a command runs in: variables, terminal, network, signals. Tests replace all
 * of it.
 */
import type { Readable, Writable } from 'node:stream'
import type { System } from '../system/system.ts'

/** Returns what Git prints; null if it fails, such as outside of a repository. */
export type Git = (directory: string, parameters: readonly string[]) => Promise<string | null>

export interface OutputStream {
  readonly isTTY: boolean
  /**
   * Writes text and resolves when it has left the process, so that an exit cannot truncate it.
   * Throws CLIENT_FILE_FAILED if a result cannot be written.
   */
  write(text: string): Promise<void>
}

export interface InputStream {
  readonly isTTY: boolean
  /** Reads up to the end; returns null if there is more than `bytesMax`. */
  readAll(bytesMax: number): Promise<Uint8Array | null>
  /** Reads one line from the terminal; returns null at its end or on an interrupt. */
  readLine(options: { readonly echo: boolean }): Promise<string | null>
}

export interface Pipes {
  readonly input: Readable
  readonly output: Writable
}

export interface RunningProgram {
  /** The file that runs: the executable, or the runtime of the packed client. */
  readonly path: string
  /** Number of the user that runs it; null if users have none. */
  readonly userId: number | null
}

export interface ClientEnvironment {
  readonly system: System
  readonly platform: string
  readonly homeDirectory: string
  readonly workingDirectory: string
  readonly program: RunningProgram
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** Returns stdin and stdout, for a command whose protocol has both. */
  pipes(): Pipes
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  variable(name: string): string | undefined
  readonly git: Git
  /** Waits before a request is sent again. Throws CLIENT_INTERRUPTED when `signal` fires. */
  readonly pause: (millis: number, signal: AbortSignal) => Promise<void>
  /** Returns false if no browser could be started; never rejects. */
  openBrowser(url: string): Promise<boolean>
  /**
   * Calls `listener` for the first interrupt; the next one ends the process. Returns a function
   * that stops listening.
   */
  onInterrupt(listener: () => void): () => void
}

/// <reference lib="esnext.disposable" />
/**
 * The module "svc/test": the engine of this Workspace for its tests, in memory, with simulated
 * time. It needs the executable `svc`: on the PATH, or named by the variable SVC_EXECUTABLE.
 */
import type { Doc, Duration, ScheduledId, TableName } from './svc.js'

/**
 * Starts an environment without documents, in which the Functions of this Workspace run as on a
 * server. Environments are independent of each other and cheap: open one in each test. The first
 * one of a process starts `svc`, which builds the Workspace and updates `_generated`.
 */
export function testEnvironment(options?: TestEnvironmentOptions): Promise<TestEnvironment>

export interface TestEnvironmentOptions {
  /**
   * A whole number from which IDs, `Math.random` and guests follow: equal tests with equal seeds
   * see equal ones. Default: the variable SVC_SEED, otherwise 1.
   */
  readonly seed?: number
  /** The simulated time at the start. Default: 2026-01-01T00:00:00Z. */
  readonly now?: Date
  /** Answers `fetch` of Actions; see `TestEnvironment.fetch`. */
  readonly fetch?: FetchHandler | null
  /** Variables by name, for `ctx.config.variable`. */
  readonly variables?: { readonly [name: string]: string }
  /** Secrets by name, for `ctx.config.secret`. */
  readonly secrets?: { readonly [name: string]: string }
  /** Receives what Functions log. Default: prints it to the console. */
  readonly log?: (line: LogLine) => void
  /** Directory of the Workspace. Default: the one that this module was generated for. */
  readonly workspace?: string
}

/**
 * Answers a request of an Action. `fetch` throws what it throws, as for a service that cannot be
 * reached. The Action must declare the host in `uses.network`.
 */
export type FetchHandler = (request: Request) => Response | Promise<Response>

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Name of the Function; empty for a message of the kit. */
  readonly function: string
  readonly message: string
  readonly data: unknown
}

type FunctionKind = 'query' | 'mutation' | 'action'

/** A reference to a Function, from `api` or `internal` of `_generated/api`. */
export interface FunctionReference<Kind extends FunctionKind, Arguments, Result> {
  readonly kind: Kind
  readonly name: string
  readonly types?: {
    readonly arguments: Arguments
    readonly result: Result
    readonly errorCode: string
  }
}

/**
 * Calls Functions, internal ones included, as one caller. Values are plain JavaScript: an int64 and
 * a timestamp are a bigint, bytes are a Uint8Array. Failed calls reject with CallError.
 */
export interface TestCaller {
  readonly query: Call<'query'>
  readonly mutation: Call<'mutation'>
  readonly action: Call<'action'>
}

interface Call<Kind extends FunctionKind> {
  <Arguments, Result>(
    reference: FunctionReference<Kind, Arguments, Result>,
    ...args: Record<never, never> extends Arguments
      ? [args?: NoInfer<Arguments>]
      : [args: NoInfer<Arguments>]
  ): Promise<Result>
  /** Calls a Function by its name, such as "messages.send". */
  (name: string, args?: { readonly [name: string]: unknown }): Promise<unknown>
}

/** Calls without an identity; `asUser`, `asService` and `asGuest` return callers with one. */
export interface TestEnvironment extends TestCaller, AsyncDisposable {
  /** Returns a caller with the identity of a user, which the Functions see in `ctx.auth`. */
  asUser(subject: string, claims?: IdentityClaims): TestCaller
  /** Returns a caller with the identity of a program. */
  asService(subject: string, claims?: IdentityClaims): TestCaller
  /**
   * Returns a caller with the identity of a guest: a new one, or the one whose token a Function
   * made with `ctx.auth.issueGuest`, until the token expires.
   */
  asGuest(token?: string): TestCaller
  /** The simulated time in microseconds, as `ctx.now()`. Each call takes a millisecond of it. */
  readonly now: bigint
  /**
   * Delivers an event of another service to a hook of `http.ts`, as the service would: signed, with
   * the secret of this name or one of the kit. `once` runs and the event is stored; the handler
   * runs in the next `advance()`. An event that was delivered before is only answered. Rejects with
   * CallError where a server would not accept the event.
   */
  deliver(hook: string, event?: DeliveredEvent): Promise<Delivered>
  /**
   * Moves the simulated time and runs the scheduled work and the Crons that become due, in the
   * order of their times; they run only here. Without a duration it runs work that is due now.
   * Failures of that work are logged, and listed by `scheduled()`.
   */
  advance(duration?: Duration, options?: AdvanceOptions): Promise<void>
  /** Returns all scheduled work, ended work included, in the order of its creation. */
  scheduled(): Promise<ScheduledCall[]>
  /** Returns the documents of a table in the order of their creation. */
  documents<Name extends TableName>(table: Name): Promise<Doc<Name>[]>
  /**
   * Runs a migration of `migrations.ts` over the documents of this environment, each exactly once,
   * and returns how many it passed and changed. Rejects if a document stops it; the next call then
   * continues there.
   */
  migrate(name: string): Promise<{ readonly processed: bigint; readonly changed: bigint }>
  /** Answers `fetch` of Actions from now on. With null `fetch` throws. */
  fetch: FetchHandler | null
  /** Ends the environment. Calls in progress are rejected. */
  close(): Promise<void>
}

export interface DeliveredEvent {
  /**
   * Headers by name, beside those of the signature. A signature that is given is verified, so that
   * a wrong one is rejected. Default of `content-type`: application/json, of bytes
   * application/octet-stream.
   */
  readonly headers?: { readonly [name: string]: string }
  /** A text or bytes, which are sent as they are, or any other value, which is sent as JSON. */
  readonly body?: unknown
  /** The path below the mount, with a query if wanted. Default: the path of the hook. */
  readonly path?: string
}

export interface Delivered {
  /** The scheduled work that handles the event. */
  readonly deliveryId: ScheduledId
  /** True for an event that was delivered before; its handler does not run again. */
  readonly replayed: boolean
}

export interface AdvanceOptions {
  /**
   * The Crons that run meanwhile: all by default, none with `false`, otherwise those with these
   * names. The others are disabled as by an operator: they miss their times, and an interval begins
   * again when they are enabled.
   */
  readonly crons?: false | readonly string[]
}

export interface IdentityClaims {
  /** Default: "https://identity.test". */
  readonly issuer?: string
  /** Default: none. */
  readonly roles?: readonly string[]
  readonly email?: string
}

export interface ScheduledCall {
  readonly id: ScheduledId
  /** Name of the Function. */
  readonly function: string
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed' | 'canceled'
  /** Runs that were started. */
  readonly attempts: number
  /** Microseconds since the Unix epoch. */
  readonly dueAt: bigint
  readonly lastErrorCode: string | null
  /** Name of the Cron; null for other work. */
  readonly cron: string | null
  /** Name of the hook whose event this is; null for other work. */
  readonly hook: string | null
}

/**
 * A failed call, as applications see it. The code of an error that the Function declares begins
 * with `APP_`. Unlike on a server, the message has the reason, and `cause` the line of the
 * Workspace.
 */
export class CallError<Code extends string = string> extends Error {
  readonly name: 'CallError'
  readonly code: Code
  readonly retryable: boolean
  readonly requestId: string | null
  readonly operationId: string | null
  readonly outcomeKnown: boolean
}

export function isCallError(error: unknown): error is CallError

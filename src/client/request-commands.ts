/**
 * Commands that send one request and print its response. Their declarations are data; a command
 * with more steps is a plain `command`.
 */
import type { Code } from '../errors/codes.ts'
import { isFault } from '../errors/fault.ts'
import type { Json } from '../value/strict-json.ts'
import { PAGE_MAX } from '../wire/fields.ts'
import {
  type CommandSpec,
  type Context,
  command,
  type Declaration,
  type Options,
  type OptionValues,
  type Positionals,
} from './contexts.ts'
import { explained } from './explanations.ts'
import type { Columns, Output } from './output.ts'
import { openRemote, type Remote } from './roots/remotes.ts'

export type Explanations = { readonly [C in Code]?: Parameters<typeof explained>[1] }

/** The things that texts may name besides the response. */
interface View<S, I> {
  readonly output: Output
  readonly server: S
  readonly input: I
}

interface Request<O extends Options, I, S, T> extends Declaration<O> {
  /** Checks the command line before anything is opened; by default it returns the options. */
  readonly input?: (
    options: OptionValues<O>,
    positionals: Positionals,
    context: Context,
  ) => I | Promise<I>
  /** Opens what the request is sent to, such as `OperatorSession.open`; by default `openRemote`. */
  readonly open?: (context: Context, options: OptionValues<O>, input: I) => Promise<S>
  /** Returns a remark that is printed on stderr before the request, unless --json is set. */
  readonly announce?: (input: I) => string
  /** Label of the spinner, such as `reading the status`. */
  readonly progress: string | ((input: I) => string)
  /** Sends the request. It may send others first whose responses it needs. */
  readonly request: (server: S, input: I) => Promise<T>
  /** Details and next steps of failures, by their codes. */
  readonly explains?: Explanations | ((input: I) => Explanations)
  /** Returns the document of --json; by default it is the response. */
  readonly document?: (response: T) => Json
  /** Returns the exit code of a response that reports failures; 0 by default. */
  readonly exit?: (response: T) => number
  /** Returns a remark that is printed on stderr after the result, unless --json is set. */
  readonly note?: (response: T) => string | null
}

/** A response that people read as a table. */
interface Table<T, E, S, I> {
  readonly rows: (response: T) => readonly E[]
  readonly columns: Columns<E, View<S, I>>
  /** Printed instead of a table without rows; by default the head is printed. */
  readonly empty?: string
}

/** A response that people read as lines. */
interface Lines<T, S, I> {
  readonly lines: (response: T, view: View<S, I>) => readonly string[]
}

/**
 * Declares a command that sends one request and prints its response. Its steps, in this order: the
 * command line is checked (`input`), the server opened (`open`), the request sent under a spinner
 * (`request`), and the response printed: with --json its `document`, otherwise a table (`rows`,
 * `columns`) or `lines`. Throws what these throw, a failure of the request with its `explains`.
 */
export function requestCommand<const O extends Options, T, E, S = Remote, I = OptionValues<O>>(
  spec: Request<O, I, S, T> & (Table<T, E, S, I> | Lines<T, S, I>),
): CommandSpec {
  const { input: inputOf, announce, progress, request, note, explains = {} } = spec
  const open = spec.open ?? (openRemote as NonNullable<typeof spec.open>)
  return command({
    ...spec,
    async run(context, options, positionals) {
      const { output } = context
      const input = (await inputOf?.(options, positionals, context)) ?? (options as I)
      const server = await open(context, options, input)
      if (announce !== undefined) await output.note(announce(input))
      const label = typeof progress === 'string' ? progress : progress(input)
      const response = await output
        .progress(label, request(server, input))
        .catch((error) =>
          rethrow(error, typeof explains === 'function' ? explains(input) : explains),
        )
      const document = spec.document?.(response) ?? (response as Json)
      await output.result(document, linesOf(spec, response, { output, server, input }))
      const remark = note?.(response) ?? null
      if (remark !== null) await output.note(remark)
      if (spec.exit !== undefined) context.exitWith(spec.exit(response))
    },
  })
}

function rethrow(error: unknown, explains: Explanations): never {
  // A server may send a code that is the name of a property of every object.
  if (!isFault(error) || !Object.hasOwn(explains, error.code)) throw error
  throw explained(error, explains[error.code]!)
}

function linesOf<T, E, S, I>(
  shown: Table<T, E, S, I> | Lines<T, S, I>,
  response: T,
  view: View<S, I>,
): readonly string[] {
  if ('lines' in shown) return shown.lines(response, view)
  const rows = shown.rows(response)
  if (rows.length === 0 && shown.empty !== undefined) return [shown.empty]
  return view.output.columns(rows, shown.columns, view)
}

/** Returns whether the value of --limit is a number of entries that a page may have. */
export function isPageLimit(text: string): boolean {
  return /^[1-9][0-9]*$/.test(text) && Number(text) <= PAGE_MAX
}

/** The remark after a page: how to read the next one. */
export function nextPage({ next }: { readonly next: string | null }): string | null {
  return next === null ? null : `More: --after ${next}`
}

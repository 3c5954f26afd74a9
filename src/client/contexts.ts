/** The context of a running command, and the declaration of a command. */
import type { WorkspaceTools } from './development/workspace-tools.ts'
import type { ClientEnvironment } from './environment.ts'
import type { Output } from './output.ts'
import type { Network } from './requests/requests.ts'

export interface Context extends Network {
  readonly environment: ClientEnvironment
  readonly output: Output
  /** Null in the packed client. */
  readonly tools: (() => Promise<WorkspaceTools>) | null
  /** Protects a promise: an interrupted command waits for it before it ends. */
  uninterrupted<T>(work: Promise<T>): Promise<T>
  /** Adds a remark that is printed once, on stderr, when the command ends. */
  remark(text: string): void
  /** Sets the exit code of a command that printed its result. */
  exitWith(code: number): void
  /** Gives the command 10 s to end after an interrupt, where 0.2 s are usual. */
  endsInOrder(): void
}

export interface OptionSpec {
  readonly description: string
  /** Name of the value in the help; null for an option without a value. */
  readonly value: string | null
  readonly required: boolean
  /** Present for an option that may be given more than once. */
  readonly repeats?: true
  /** The only values; the parser rejects others, and shells complete them. */
  readonly values?: readonly string[]
  /** Present where the value has several of `values`, separated by commas. */
  readonly list?: true
}

export interface PositionalSpec {
  readonly name: string
  readonly description: string
  readonly required: boolean
  /** The only values; the parser rejects others, and shells complete them. */
  readonly values?: readonly string[]
  /** Present where the argument has several of `values`, separated by commas. */
  readonly list?: true
}

export interface Invocation {
  readonly options: {
    readonly [name: string]: string | readonly string[] | boolean | undefined
  }
  readonly positionals: readonly (string | undefined)[]
}

export interface CommandSpec {
  /** One to three words. */
  readonly name: string
  /** A single word that stands for this command if no second word follows; null for none. */
  readonly alias: string | null
  readonly summary: string
  /** Further lines of the help. */
  readonly details: readonly string[]
  readonly positionals: readonly PositionalSpec[]
  readonly options: { readonly [name: string]: OptionSpec }
  readonly examples: readonly string[]
  run(context: Context, invocation: Invocation): Promise<void>
}

type Switch = OptionSpec & { readonly value: null }
type Repeated = OptionSpec & { readonly value: string; readonly repeats: true }
type Valued<R extends boolean> = OptionSpec & { readonly value: string; readonly required: R }
type Closed<V extends string> = { readonly values: readonly V[] }

/** Declares an argument by its position; a command needs it unless it is optional. */
export function argument(name: string, description: string): PositionalSpec {
  return { name, description, required: true }
}

export function optionalArgument(name: string, description: string): PositionalSpec {
  return { name, description, required: false }
}

export function flag(description: string): Switch {
  return { description, value: null, required: false }
}

/** Names what all commands that have it act on, so it may be left out. */
export const REMOTE_FLAG = flag('Act on the linked Environment; this is the default')

export function option(value: string, description: string): Valued<false> {
  return { description, value, required: false }
}

export function requiredOption(value: string, description: string): Valued<true> {
  return { description, value, required: true }
}

/** Declares an option that may be given more than once; its values are a list. */
export function repeatedOption(value: string, description: string): Repeated {
  return { description, value, required: false, repeats: true }
}

/** Declares an option that has one of the values. */
export function choice<const V extends string>(
  value: string,
  values: readonly V[],
  description: string,
): Valued<false> & Closed<V> {
  return { ...option(value, description), values }
}

export function requiredChoice<const V extends string>(
  value: string,
  values: readonly V[],
  description: string,
): Valued<true> & Closed<V> {
  return { ...requiredOption(value, description), values }
}

/** Declares an option that has one of the values each time that it is given. */
export function repeatedChoice<const V extends string>(
  value: string,
  values: readonly V[],
  description: string,
): Repeated & Closed<V> {
  return { ...repeatedOption(value, description), values }
}

/** Declares an option that has some of the values, separated by commas. */
export function listOption(
  value: string,
  values: readonly string[],
  description: string,
): Valued<false> & { readonly list: true } {
  return { ...option(value, description), values, list: true }
}

type ValueOf<S extends OptionSpec> = S extends { readonly list: true }
  ? string
  : S extends Closed<infer V>
    ? V
    : string

/** The values of the declared options by their names. */
export type OptionValues<O extends Options> = {
  readonly [N in keyof O]: O[N]['value'] extends null
    ? boolean
    : O[N] extends Repeated
      ? readonly ValueOf<O[N]>[]
      : O[N]['required'] extends true
        ? ValueOf<O[N]>
        : ValueOf<O[N]> | undefined
}

export type Options = { readonly [name: string]: OptionSpec }
export type Positionals = Invocation['positionals']

/** The parts of a command that need no code; the help has them. */
export interface Declaration<O extends Options> {
  readonly name: string
  readonly alias?: string
  readonly summary: string
  readonly details?: readonly string[]
  readonly positionals?: readonly PositionalSpec[]
  readonly options: O
  readonly examples?: readonly string[]
}

/** Declares a command; the type of `options` in `run` follows from the declared options. */
export function command<const O extends Options>(
  spec: Declaration<O> & {
    run(context: Context, options: OptionValues<O>, positionals: Positionals): Promise<void>
  },
): CommandSpec {
  return {
    name: spec.name,
    alias: spec.alias ?? null,
    summary: spec.summary,
    details: spec.details ?? [],
    positionals: spec.positionals ?? [],
    options: spec.options,
    examples: spec.examples ?? [],
    run: (context, invocation) =>
      spec.run(context, invocation.options as OptionValues<O>, invocation.positionals),
  }
}

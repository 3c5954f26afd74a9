/** What a running command is given, and how a command describes itself. */
import type { ProjectId } from '../value/ids.ts'
import type { ClientEnvironment } from './environment.ts'
import type { Output } from './output.ts'
import type { Network } from './requests.ts'

/** What needs more than Node: only the executable brings it. */
export interface WorkspaceTools {
  /** The package frame of a Workspace; the same source gives the same bytes. */
  build(input: {
    /** Absolute. */
    readonly workspaceDirectory: string
    readonly projectId: ProjectId
  }): Promise<Uint8Array>
  /** Writes a first Workspace, overwriting nothing. Answers the paths that it made. */
  writeWorkspace(input: {
    /** Absolute. */
    readonly workspaceDirectory: string
    readonly name: string
  }): Promise<readonly string[]>
}

export interface Context extends Network {
  readonly environment: ClientEnvironment
  readonly output: Output
  /** Null in the packed client. */
  readonly tools: (() => Promise<WorkspaceTools>) | null
  /** An interrupted command waits for what is given here before it ends. */
  uninterrupted<T>(work: Promise<T>): Promise<T>
}

export interface OptionSpec {
  readonly description: string
  /** Name of the value in the help; null for a switch. */
  readonly value: string | null
  readonly required: boolean
}

export interface PositionalSpec {
  readonly name: string
  readonly description: string
  readonly required: boolean
}

export interface Invocation {
  readonly options: { readonly [name: string]: string | boolean | undefined }
  readonly positionals: readonly (string | undefined)[]
}

export interface CommandSpec {
  /** One or two words. */
  readonly name: string
  /** A first word that means this command where no second one follows. */
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
type Valued<R extends boolean> = OptionSpec & { readonly value: string; readonly required: R }

export function flag(description: string): Switch {
  return { description, value: null, required: false }
}

/** A switch without which the command does nothing, such as `--remote`. */
export function requiredFlag(description: string): Switch & { readonly required: true } {
  return { description, value: null, required: true }
}

export function option(value: string, description: string): Valued<false> {
  return { description, value, required: false }
}

export function requiredOption(value: string, description: string): Valued<true> {
  return { description, value, required: true }
}

type OptionValues<O extends { readonly [name: string]: OptionSpec }> = {
  readonly [N in keyof O]: O[N]['value'] extends null
    ? boolean
    : O[N]['required'] extends true
      ? string
      : string | undefined
}

/** Ties the type of `options` in `run` to what the command declares. */
export function command<const O extends { readonly [name: string]: OptionSpec }>(spec: {
  readonly name: string
  readonly alias?: string
  readonly summary: string
  readonly details?: readonly string[]
  readonly positionals?: readonly PositionalSpec[]
  readonly options: O
  readonly examples?: readonly string[]
  run(
    context: Context,
    options: OptionValues<O>,
    positionals: readonly (string | undefined)[],
  ): Promise<void>
}): CommandSpec {
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

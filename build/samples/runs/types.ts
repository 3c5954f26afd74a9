/** The descriptions by which `e2e/documents` runs the commands of a document. */

/** Remembers a part of the output of a command by a name that stands in samples. */
export interface Remember {
  readonly as: string
  readonly command: string
  /** A pattern whose first group is remembered. */
  readonly pattern: RegExp
}

/** Starts a command that runs beside the others, once its output has what `until` expects. */
export interface Start {
  readonly start: string
  readonly until: RegExp
}

/** Ends a command that runs beside the others. */
export interface Stop {
  /** The beginning of the command. */
  readonly stop: string
}

/** Writes a sample of the document to a file, as its reader does. */
export interface WriteSample {
  readonly write: string
  /** The place of the sample without its document. */
  readonly sample: string
  /** Texts of the sample, and those that replace them. */
  readonly replace?: Readonly<Record<string, string>>
}

/** A command that a sample does not show, since its reader has run it before. */
export type Preparation = string | Remember | Start | Stop | WriteSample

export interface CommandRun {
  readonly before?: readonly Preparation[]
  /** Texts of the sample, and those that replace them. */
  readonly replace?: Readonly<Record<string, string>>
  /** The reason why the command is not run, although others of its block are. */
  readonly skip?: string
  /** The exit code; 0 by default. */
  readonly exit?: number
  /** A pattern that the standard output matches. */
  readonly prints?: RegExp
  /** The command runs until its output contains this, and is then interrupted. */
  readonly until?: RegExp
  /** The command runs until one stops it or the document ends. Needs `until`. */
  readonly stays?: boolean
  /** Text that a person types at a terminal. */
  readonly types?: string
}

export interface BlockRun {
  /** The place without its document. */
  readonly block: string
  readonly before?: readonly Preparation[]
  readonly after?: readonly Preparation[]
  readonly replace?: Readonly<Record<string, string>>
  /**
   * The beginning of a command selects its description; a list has one for each command with that
   * beginning. A command without a description has to succeed.
   */
  readonly commands?: Readonly<Record<string, CommandRun | readonly CommandRun[]>>
}

export interface DocumentRun {
  /** The path of the document. */
  readonly document: string
  readonly test: string
  readonly before?: readonly Preparation[]
  readonly replace?: Readonly<Record<string, string>>
  readonly blocks: readonly BlockRun[]
}

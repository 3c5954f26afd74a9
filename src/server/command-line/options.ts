/** Options of the modes of `svc-server`, as data: the parser, the help and shells read them. */

export interface ModeOption {
  /** The name with its dashes. */
  readonly name: string
  /** Name of the value in the help; null for an option without a value. */
  readonly value: string | null
  readonly description: string
  readonly required?: true
  /** Present for an option that may be given more than once. */
  readonly repeats?: true
}

/** The values of each option that was given; empty texts for an option without a value. */
export type GivenOptions = ReadonlyMap<string, readonly string[]>

/** Returns null for arguments that are not those of the options. */
export function parseOptions(
  args: readonly string[],
  options: readonly ModeOption[],
): GivenOptions | null {
  const given = new Map<string, string[]>()
  for (let i = 0; i < args.length; i++) {
    const option = options.find(({ name }) => name === args[i])
    if (option === undefined) return null
    const value = option.value === null ? '' : args[++i]
    const known = given.get(option.name) ?? []
    if (value === undefined || (known.length > 0 && option.repeats !== true)) return null
    given.set(option.name, [...known, value])
  }
  const isMissing = ({ name, required }: ModeOption) => required === true && !given.has(name)
  return options.some(isMissing) ? null : given
}

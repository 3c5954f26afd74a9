/** A mistake in a declaration of a Workspace. The message names the problem, then the fix. */

export class DefinitionError extends Error {
  constructor(problem: string, fix: string) {
    super(`${problem}. ${fix}.`)
    this.name = 'DefinitionError'
  }
}

/** Returns `"a", "b" or "c"`. */
export function quotedList(names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`)
  const last = quoted.pop()
  if (last === undefined) return 'none'
  return quoted.length === 0 ? last : `${quoted.join(', ')} or ${last}`
}

export function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Throws for the first unknown option, since a misspelled one would be ignored. */
export function rejectUnknownOptions(
  options: object,
  allowed: readonly string[],
  owner: string,
): void {
  for (const name of Object.keys(options)) {
    if (allowed.includes(name)) continue
    throw new DefinitionError(
      `${owner} has no option "${name}"`,
      allowed.length === 0 ? 'Leave it out' : `Use ${quotedList(allowed)}`,
    )
  }
}

/** A mistake in what a Workspace declares. The message says what is wrong, then how to mend it. */

export class DefinitionError extends Error {
  constructor(wrong: string, mend: string) {
    super(`${wrong}. ${mend}.`)
    this.name = 'DefinitionError'
  }
}

/** `a, b or c`, each in quotes. */
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

/** Throws for the first option that nothing reads, since a misspelled one would be ignored. */
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

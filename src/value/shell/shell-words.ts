/** Texts in commands that users copy into a POSIX shell. */

/** Returns the text as one word of a command line: as it is if the shell leaves it so, or quoted. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

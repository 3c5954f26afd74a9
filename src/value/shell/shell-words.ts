/** Texts in commands that users copy into a POSIX shell. */

/** Returns the text as one word of a command line, quoted only where the shell would change it. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

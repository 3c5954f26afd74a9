/** The clock of the browser. */

/** Returns milliseconds since the Unix epoch. */
export function nowMillis(): number {
  return Date.now()
}

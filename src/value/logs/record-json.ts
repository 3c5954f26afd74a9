/**
 * The JSON of log records: of the server's own log and of the log of an Environment. A record is
 * joined from texts of entries, so that those which many records share are made once.
 */

/** Characters that JSON does not escape and terminals interpret: C1, lines, bidi overrides. */
const UNSAFE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Replaces characters by the escape sequence that JSON has for them. */
export function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Escapes the characters that JSON leaves as they are and terminals interpret. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, escapeCharacter)
}

/** Returns the JSON of a value that a terminal can show. */
export function jsonText(value: unknown): string {
  return escapeUnsafe(JSON.stringify(value))
}

/** Returns the entries of an object as JSON, without its braces. */
export function jsonEntries(object: Readonly<Record<string, unknown>>): string {
  return jsonText(object).slice(1, -1)
}

/** Joins texts of entries; empty ones are left out. Names must not repeat. */
export function joinEntries(...entries: readonly string[]): string {
  return entries.filter((text) => text !== '').join(',')
}

/** Returns the JSON of the object that has these entries. */
export function jsonRecord(...entries: readonly string[]): string {
  return `{${joinEntries(...entries)}}`
}

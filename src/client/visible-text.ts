/**
 * Escapes text of servers and files for a terminal: control characters, bidirectional controls and
 * invisible characters.
 */
import type { Json } from '../value/strict-json.ts'

/** Controls, formats, line separators, lone surrogates and default-ignorable characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu

/** Escapes a single line, such as a name, as in `\u{202e}`; line feeds and tabs too. */
export function printable(text: string): string {
  return text.replace(HIDDEN, escaped)
}

/** Escapes text of several lines; line feeds and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(HIDDEN, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  )
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}

/** Returns JSON without a line end, with the same characters escaped. */
export function printableJsonLine(value: Json): string {
  return visibleJson(JSON.stringify(value))
}

/** Formats indented JSON with JSON escapes for the same characters, in pairs above U+FFFF. */
export function printableJson(value: Json): string {
  return visibleJson(JSON.stringify(value, null, 2))
}

function visibleJson(json: string): string {
  return json.replace(HIDDEN, (character) =>
    character === '\n'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  )
}

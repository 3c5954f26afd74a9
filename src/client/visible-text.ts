/**
 * Text of servers and files in a form that a terminal shows instead of obeying it: controls,
 * characters that turn the direction of text, and characters that nobody sees are escaped.
 */
import type { Json } from '../value/strict-json.ts'

/** Controls, formats, separators of lines, lone surrogates, and what is invisible by default. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu

/** One line, such as a name: escapes as `\u{202e}`, line feeds and tabs too. */
export function printable(text: string): string {
  return text.replace(HIDDEN, escaped)
}

/** Lines of our own text with text of others in it: escapes everything but line feeds and tabs. */
export function printableLines(text: string): string {
  return text.replace(HIDDEN, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  )
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}

/** Indented JSON with the same characters escaped as JSON does it, those above U+FFFF as pairs. */
/** Returns JSON without a line end. */
export function printableJsonLine(value: Json): string {
  return visibleJson(JSON.stringify(value))
}

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

/** Finds literals that are spread into another literal, which only evades the bounds of lines. */
import type { Finding, SourceFile } from './source-files.ts'

const OPENING = /\.\.\.[[{]/g
/** The text after an entry. A parameter ends before the arrow of its function. */
const END = /^\s*(?:[,\]}]|\)(?!\s*=>))/
const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' }

export function literalSpreadFindings(file: SourceFile): Finding[] {
  const code = file.code.join('\n')
  return [...code.matchAll(OPENING)]
    .map(({ index }) => index)
    .filter((at) => isWhole(code, at + '...'.length))
    .map((at) => ({
      file: file.path,
      line: code.slice(0, at).split('\n').length,
      rule: 'a literal is spread into another one',
      replacement: 'write its entries there',
    }))
}

/** Returns whether a literal is all that is spread: not `[1, 2].map(f)`, and not a parameter. */
function isWhole(code: string, start: number): boolean {
  const open = code[start]!
  const close = CLOSING[open]!
  let depth = 0
  for (let at = start; at < code.length; at++) {
    if (code[at] === open) depth += 1
    if (code[at] === close) depth -= 1
    if (depth === 0) return END.test(code.slice(at + 1))
  }
  return false
}

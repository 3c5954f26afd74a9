/** Parts of the scripts of bash and zsh, whose syntax of words and of `case` is the same. */
import { type Branch, branches, type CompletedValue, type Lookups, wordsOf } from './programs.ts'

/** Quotes a word, so that no shell expands anything in it. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

export function quotedAll(words: readonly string[]): string {
  return words.map(quoted).join(' ')
}

/** Formats a function that runs the branch of its first argument. */
export function caseFunction(name: string, cases: readonly Branch[]): string {
  const lines = cases.map(({ keys, text }) => `    ${keys.map(quoted).join('|')}) ${text} ;;`)
  return [`${name}() {`, '  case $1 in', ...lines, '  esac', '}'].join('\n')
}

/** Formats a function that sets `kind` and `choices` for the key of a value. */
export function valueFunction(name: string, { values }: Lookups): string {
  const render = (value: CompletedValue): string => {
    const words = wordsOf(value)
    return `kind=${value.kind}${words.length === 0 ? '' : ` choices=(${quotedAll(words)})`}`
  }
  return caseFunction(name, branches(values, render))
}

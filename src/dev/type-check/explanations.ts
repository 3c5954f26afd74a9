/** Turns messages of the compiler about Functions into sentences with a fix. */
import { REPLACEMENTS } from '../../runner/realm/missing-globals.ts'
import type { Problem } from '../workspace/problems.ts'

export type Explanation = Pick<Problem, 'message' | 'fix'>

/** Number of lines of a compiler message that are shown. */
const LINES_MAX = 4
const ARGUMENT =
  /^Argument of type '"([^"]*)"' is not assignable to parameter of type '([^\n]*)'\.?/
const UNKNOWN_FIELD = /'([^']+)' does not exist in type/
const MISSPELT = /Did you mean(?: to write)? '([^']+)'/
const MISSING_PROPERTY = /^Property '([^']+)' does not exist on type '([^\n]*)'/
const MISSING_NAME = /^Cannot find name '([^']+)'/
const ACTION_ONLY = new Set(['runAction', 'secret', 'createUpload', 'put', 'read'])

/** Explains a message. `before` is the source of the file up to its location. */
export function explain(message: string, before: string): Explanation {
  const text = message.split('\n').slice(0, LINES_MAX).join('\n')
  return (
    explainArgument(text, before.trimEnd()) ??
    explainField(text) ??
    explainProperty(text) ??
    explainName(text) ?? { message: text, fix: fixOf(text) }
  )
}

function explainArgument(text: string, before: string): Explanation | null {
  const [, given, accepted = ''] = ARGUMENT.exec(text) ?? []
  if (given === undefined) return null
  const names = accepted === 'never' ? [] : accepted.split(' | ').filter(isText).sort()
  const choice = names.length === 0 ? null : `Use ${names.join(' or ')}`
  const method = /([A-Za-z]+)\($/.exec(before)?.[1]
  switch (method) {
    case 'index': {
      const fix = choice ?? 'Use .scan()'
      return {
        message: `The table has no index "${given}".`,
        fix: `${fix}, or add the index in schema.ts.`,
      }
    }
    case 'fail': {
      const declare = `errors: { ${given}: "conflict" }`
      return {
        message: `The Function does not declare the error "${given}".`,
        fix: choice === null ? `Add ${declare}.` : `${choice}, or add ${declare}.`,
      }
    }
    case 'table':
    case 'id':
    case 'insert':
      return {
        message: `The schema has no table "${given}".`,
        fix: `${choice ?? 'Check its spelling'}, or add the table in schema.ts.`,
      }
    default:
      return null
  }
}

function isText(type: string): boolean {
  return type.startsWith('"')
}

function explainField(text: string): Explanation | null {
  if (!text.startsWith('Object literal may only specify known properties')) return null
  const field = UNKNOWN_FIELD.exec(text)?.[1]
  if (field === undefined) return null
  const meant = MISSPELT.exec(text)?.[1]
  return {
    message: `"${field}" is not a field here.`,
    fix: meant === undefined ? 'Check its spelling, or declare it.' : `Write "${meant}".`,
  }
}

function explainProperty(text: string): Explanation | null {
  const [, name = '', owner = ''] = MISSING_PROPERTY.exec(text) ?? []
  if (name === '') return null
  if (owner === 'DatabaseReader') {
    return {
      message: `A Query only reads: its ctx.db has no "${name}".`,
      fix: 'Write mutation(...) instead of query(...), or move this into a Mutation.',
    }
  }
  if (owner.startsWith('Promise<')) {
    return { message: `"${name}" belongs to the result of a promise.`, fix: 'Write await before.' }
  }
  if (owner.startsWith('QueryContext<') && (name === 'runMutation' || name === 'scheduler')) {
    return { message: `A Query only reads: its ctx has no "${name}".`, fix: 'Use a Mutation.' }
  }
  if (/^(?:Query|Mutation)Context<|^Storage|^Configuration$/.test(owner) && ACTION_ONLY.has(name)) {
    return { message: `Only an Action has "${name}".`, fix: 'Move this into an action(...).' }
  }
  return null
}

function explainName(text: string): Explanation | null {
  const name = MISSING_NAME.exec(text)?.[1]
  const replacement = name === undefined ? undefined : REPLACEMENTS[name]
  if (replacement === undefined) return null
  return {
    message: `"${name}" is not available in Functions.`,
    fix: `${replacement[0]!.toUpperCase()}${replacement.slice(1)}.`,
  }
}

/** Returns the fix of a common mistake; null if the message says enough. */
function fixOf(text: string): string | null {
  if (
    /'number' is not assignable to (?:parameter of )?type '(?:bigint|.*\bbigint\b.*)'/.test(text)
  ) {
    return 'Write a bigint, such as 5n or BigInt(value).'
  }
  if (/Cannot find module '([^']+)'/.test(text)) return 'Check the path, or install the package.'
  return null
}

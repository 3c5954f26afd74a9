/**
 * Configuration files of closed strict JSON. A failure names the variable, the field and its rule;
 * unknown fields stay unnamed, since their names are content of the file too.
 */
import type { TableCode } from '../errors/codes.ts'
import type { Fault } from '../errors/fault.ts'
import { type Json, parseStrictJson } from '../value/strict-json.ts'
import { ValidationError } from '../value/validation-error.ts'
import { text } from '../wire/fields.ts'
import { readOr } from '../wire/reading/read.ts'
import { rule } from '../wire/rules.ts'
import { type Schema, schema } from '../wire/schema.ts'
import { hasScheme, type OriginScheme } from './addresses.ts'
import { fault, readFile } from './sources.ts'
import type { VariableName } from './variables.ts'

const DEPTH_MAX = 8
/** Members of one object or list. */
const ENTRIES_MAX = 64

/** A text of at most `lengthMax` UTF-16 code units without control characters. */
export function printable(lengthMax: number): Schema<string> {
  return text(
    new RegExp(`^[^\\u0000-\\u001f\\u007f-\\u009f]{1,${lengthMax}}$`),
    `a string of 1 to ${lengthMax} printable characters`,
  )
}

/** A list of different strings, which are rather few. */
export function differentStrings(countMax: number) {
  const fits = (list: readonly string[]): boolean =>
    list.length > 0 && list.length <= countMax && new Set(list).size === list.length
  return schema(['string[]', ':', rule(`1 to ${countMax} different strings`, fits)])
}

/** Reads the file that `variable` names; every failure has `code`. */
export function jsonFile(code: TableCode, variable: VariableName) {
  function rejected(field: string, rule: string): Fault {
    return fault(code, variable, `${field}: ${rule}`)
  }

  function parse(bytes: Uint8Array): Json {
    try {
      return parseStrictJson(bytes, { depthMax: DEPTH_MAX, entriesMax: ENTRIES_MAX })
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw rejected('the file', 'one strict JSON document')
    }
  }

  return {
    rejected,

    /** Throws SERVER_CONFIGURATION_INVALID for a relative path. */
    read<T>(path: string, content: Schema<T>): T {
      const json = parse(readFile(path, variable, code))
      return readOr(content, json, (violation) => {
        return rejected(violation.path === '$' ? 'the file' : violation.path, violation.rule)
      })
    },
  }
}

/** Returns whether a URL has no userinfo and no fragment, not even an empty one. */
export function isPlainUrl(url: URL, schemes: readonly OriginScheme[]): boolean {
  return (
    hasScheme(url, schemes) && url.username === '' && url.password === '' && !url.href.includes('#')
  )
}

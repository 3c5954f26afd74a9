/**
 * Configuration files of closed strict JSON. A failure names the variable, the field and its rule;
 * unknown fields stay unnamed, since their names are content of the file too.
 */
import type { TableCode } from '../errors/codes.ts'
import type { Fault } from '../errors/fault.ts'
import { type Json, parseStrictJson } from '../value/strict-json.ts'
import { ValidationError } from '../value/validation-error.ts'
import { hasScheme, type OriginScheme } from './addresses.ts'
import { fault, readFile } from './sources.ts'
import type { VariableName } from './variables.ts'

/** The members of one object and nothing that it inherits. */
export type Fields = Readonly<Record<string, Json>>

const DEPTH_MAX = 8
/** Members of one object or list. */
const ENTRIES_MAX = 64
const PRINTABLE = /^[^\u0000-\u001f\u007f-\u009f]+$/

/** Readers of the file that `variable` names; each throws `code`. */
export function jsonFile(code: TableCode, variable: VariableName) {
  function refused(field: string, rule: string): Fault {
    return fault(code, variable, `${field}: ${rule}`)
  }

  return {
    refused,

    /** SERVER_CONFIGURATION_INVALID for a relative path. */
    read(path: string): Json {
      const bytes = readFile(path, variable, code)
      try {
        return parseStrictJson(bytes, { depthMax: DEPTH_MAX, entriesMax: ENTRIES_MAX })
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error
        throw refused('the file', 'one strict JSON document')
      }
    },

    open(json: Json | undefined, at: string, known: readonly string[]): Fields {
      if (json === null || typeof json !== 'object' || Array.isArray(json)) {
        throw refused(at, 'a JSON object')
      }
      if (Object.keys(json).some((key) => !known.includes(key))) {
        throw refused(at, `no field but ${known.join(', ')}`)
      }
      return Object.assign(Object.create(null), json)
    },

    text(fields: Fields, key: string, lengthMax: number, at = key): string {
      const value = fields[key]
      if (typeof value !== 'string' || value.length > lengthMax || !PRINTABLE.test(value)) {
        throw refused(at, `a string of 1 to ${lengthMax} printable characters`)
      }
      return value
    },

    strings(fields: Fields, key: string, countMax: number, at = key): readonly string[] {
      const list = fields[key]
      const fits =
        Array.isArray(list) &&
        list.length > 0 &&
        list.length <= countMax &&
        list.every((item) => typeof item === 'string') &&
        new Set(list).size === list.length
      if (!fits) throw refused(at, `1 to ${countMax} different strings`)
      return list as string[]
    },
  }
}

/** Without userinfo and fragment, not even an empty one. */
export function isPlainUrl(url: URL, schemes: readonly OriginScheme[]): boolean {
  return (
    hasScheme(url, schemes) && url.username === '' && url.password === '' && !url.href.includes('#')
  )
}

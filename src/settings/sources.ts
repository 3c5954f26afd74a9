/**
 * Reads one variable from its one source: the environment, or the file that `<name>_FILE` names.
 * Every failure names variables and rules, never what was found there.
 */
import type { TableCode } from '../errors/codes.ts'
import { Fault } from '../errors/fault.ts'
import { FILE_RULES, FileFailure, isReadableByOthers, readProtectedFile } from '../system/files.ts'
import { Secret } from '../value/secret.ts'
import {
  isRequired,
  type PlainName,
  type SecretName,
  sourceNames,
  VARIABLES,
  type Variable,
  type VariableName,
  variable,
} from './variables.ts'

export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** Files with a secret (the pepper of subjects, a private key) that no `_FILE` form names. */
const SECRET_FILES: readonly VariableName[] = [
  'SERVICE_PLATFORM_OIDC_CONFIG',
  'SERVICE_TLS_KEY_FILE',
]
/** Secret files and values (contract/management.md, Limits). */
export const VALUE_BYTES_MAX = 64 * 1024
const CONTROL = /[\u0000-\u001f\u007f]/

/** A secret and the name of the variable that gave it, for faults about its content. */
export interface SecretSource {
  readonly name: string
  readonly secret: Secret
}

export function fault(code: TableCode, name: string, rule: string): Fault {
  return new Fault(code, { detail: `${name}: ${rule}`, violations: [{ path: name, rule }] })
}

export function invalid(name: string, rule: string): Fault {
  return fault('SERVER_CONFIGURATION_INVALID', name, rule)
}

/** The value, its default, or null. An empty value is a mistake, never a way to say "unset". */
export function readPlain(environment: ProcessEnvironment, name: PlainName): string | null {
  const row = variable(name)
  const value = environment[name]
  if (value === undefined) {
    if (isRequired(row)) throw missing(name, row)
    return row.default ?? null
  }
  requireLine(value, name, row)
  return value
}

/** Throws SERVER_SECRET_CONFIGURATION_CONFLICT where more than one source is configured. */
export function readSecret(environment: ProcessEnvironment, name: SecretName): SecretSource | null {
  const row = variable(name)
  const names = sourceNames(row)
  const present = names.filter((source) => environment[source] !== undefined)
  if (present.length > 1) throw conflict(present)
  const [source] = present
  if (source === undefined) {
    if (isRequired(row)) throw missing(name, row)
    return null
  }
  const value = environment[source]!
  requireLine(value, source, row)
  return {
    name: source,
    secret: new Secret(source.endsWith('_FILE') ? readLine(value, source, row) : value),
  }
}

/** The deprecated names that this environment uses. */
export function deprecatedNames(
  environment: ProcessEnvironment,
  names: readonly SecretName[],
): string[] {
  return names
    .map(variable)
    .flatMap((row) => sourceNames(row).filter((name) => !name.startsWith(row.name)))
    .filter((name) => environment[name] !== undefined)
}

/** Settings whose file holds a secret that every user of the machine can read. */
export function exposedNames(environment: ProcessEnvironment): string[] {
  const sources = VARIABLES.filter(({ secret }) => secret).flatMap((row) => sourceNames(row))
  const files = sources.filter((name) => name.endsWith('_FILE'))
  return [...files, ...SECRET_FILES].filter((name) => {
    const path = environment[name]
    return path !== undefined && isReadableByOthers(path)
  })
}

/**
 * Reads a bounded regular file. Symbolic links and files that others can write are rejected. Every
 * failure has `code` and names `name`.
 */
export function readFile(path: string, name: string, code: TableCode): Uint8Array {
  try {
    return readProtectedFile(path, { bytesMax: VALUE_BYTES_MAX })
  } catch (error) {
    if (!(error instanceof FileFailure)) throw error
    const rule =
      error.reason === 'too_large' ? 'a file of at most 64 KiB' : FILE_RULES[error.reason]
    throw fault(error.reason === 'not_absolute' ? 'SERVER_CONFIGURATION_INVALID' : code, name, rule)
  }
}

function readLine(path: string, name: string, row: Variable): string {
  const bytes = readFile(path, name, 'SERVER_CONFIGURATION_INVALID')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw invalid(name, 'a file of UTF-8 text')
  }
  const line = text.endsWith('\n') ? text.slice(0, -1) : text
  requireLine(line, name, row)
  return line
}

function requireLine(value: string, name: string, row: Variable): void {
  if (value === '') {
    throw isRequired(row) ? missing(name, row) : invalid(name, 'a value, or to be unset')
  }
  if (CONTROL.test(value)) throw invalid(name, 'one line without control characters')
  if (new TextEncoder().encode(value).length > VALUE_BYTES_MAX) {
    throw invalid(name, 'at most 64 KiB')
  }
}

function missing(name: string, row: Variable): Fault {
  return fault('SERVER_CONFIGURATION_MISSING', name, row.description)
}

function conflict(names: readonly string[]): Fault {
  const rule = 'exactly one of them'
  return new Fault('SERVER_SECRET_CONFIGURATION_CONFLICT', {
    detail: `${names.join(', ')}: ${rule}`,
    violations: names.map((path) => ({ path, rule })),
  })
}

/** Returns a number between `min` and `max`. Throws SERVER_CONFIGURATION_INVALID. */
export function wholeNumber(
  environment: ProcessEnvironment,
  name: PlainName,
  { min, max, unit }: { readonly min: number; readonly max: number; readonly unit: string },
): number {
  const value = readPlain(environment, name)!
  const number = /^[1-9][0-9]{0,6}$/.test(value) ? Number(value) : 0
  if (number >= min && number <= max) return number
  throw invalid(name, `a whole number${unit} from ${min} to ${max}`)
}

/** Names of an environment that nothing here reads, though they look so: often misspelled ones. */
export function unreadNames(environment: ProcessEnvironment): string[] {
  const known = new Set(VARIABLES.flatMap((row) => sourceNames(row)))
  return Object.keys(environment)
    .filter((name) => /^(?:SERVICE|OTEL)_/.test(name) && environment[name] !== undefined)
    .filter((name) => !known.has(name))
    .sort()
}

/**
 * Reads variables as systemd does: the files of EnvironmentFile=, and the words of Environment= as
 * `systemctl show` prints them.
 */
import { Secret } from '../../value/secret.ts'

/** Settings of a server. Any of them may hold a password. */
export type ServiceVariables = Readonly<Record<string, Secret>>

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Parses an environment file. Other lines than assignments are ignored, as systemd does. */
export function parseEnvironmentFile(text: string): ServiceVariables {
  const variables: Record<string, Secret> = {}
  for (const line of logicalLines(text)) {
    const trimmed = line.trimStart()
    if (trimmed === '' || trimmed.startsWith('#') || trimmed.startsWith(';')) continue
    const at = trimmed.indexOf('=')
    const name = trimmed.slice(0, Math.max(at, 0)).trim()
    if (!NAME.test(name)) continue
    variables[name] = new Secret(unquoted(trimmed.slice(at + 1).trim()))
  }
  return variables
}

/** Parses assignments that are separated by spaces, each of which may be quoted as a whole. */
export function parseAssignments(text: string): ServiceVariables {
  const words = text.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/g) ?? []
  const variables: Record<string, Secret> = {}
  for (const word of words) {
    const plain = unquoted(word)
    const at = plain.indexOf('=')
    if (at > 0 && NAME.test(plain.slice(0, at))) {
      variables[plain.slice(0, at)] = new Secret(plain.slice(at + 1))
    }
  }
  return variables
}

/** Joins a line that ends with a backslash with the next one. */
function logicalLines(text: string): string[] {
  return text.replaceAll('\r\n', '\n').replaceAll(/\\\n/g, '').split('\n')
}

/** Removes quotes and the backslashes that escape; a part in single quotes is literal. */
function unquoted(text: string): string {
  return text.replaceAll(
    /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs,
    (_, single?: string, double?: string, escaped?: string) =>
      single ?? double?.replaceAll(/\\(["\\`$])/g, '$1') ?? escaped ?? '',
  )
}

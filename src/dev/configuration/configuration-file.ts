/** The file in a Workspace with the variables and secrets of its local Environment. */
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { FileFailure, readSecretFile } from '../../system/files.ts'
import { isConfigurationName } from '../../value/configuration.ts'
import { Secret } from '../../value/secret.ts'

/** In the directory of the Workspace, where the .gitignore of each template names it. */
export const CONFIGURATION_FILE = '.env.local'
const BYTES_MAX = 4 * 1024 * 1024

export interface ConfigurationFile {
  /**
   * Values by name, each of which may be a secret. Null if the file exists and cannot be read; an
   * absent file has none.
   */
  readonly values: ReadonlyMap<string, Secret> | null
  /** Problems with their lines, one sentence or more each, without any text of the file. */
  readonly warnings: readonly string[]
}

/** Never throws and never blocks. */
export function readConfigurationFile(workspaceDirectory: string): ConfigurationFile {
  try {
    const bytes = readSecretFile(join(workspaceDirectory, CONFIGURATION_FILE), {
      bytesMax: BYTES_MAX,
    })
    return parseConfigurationFile(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof FileFailure ? error.reason : null
    if (reason === 'missing') return { values: new Map(), warnings: [] }
    const rule = error instanceof FileFailure ? error.message : 'UTF-8'
    return {
      values: null,
      warnings: [`${CONFIGURATION_FILE} was not read: it must be ${rule}. Nothing was changed.`],
    }
  }
}

const ASSIGNMENT = /^\s*(?:export\s+)?([^\s=:#]+)\s*[=:]/
const NAME_RULE = 'A name has upper-case letters, digits and _, such as API_KEY, at most 64.'

/** Reads lines `NAME=value` in the notation of dotenv files, of which Node.js has the parser. */
export function parseConfigurationFile(text: string): ConfigurationFile {
  const parsed = new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))
  const long = [...parsed.values()].filter((value) => value.includes('\n'))
  const warnings: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const name = ASSIGNMENT.exec(line)?.[1]
    const isSet = name !== undefined && parsed.has(name)
    if (isSet && isConfigurationName(name)) continue
    if (!isSet && long.some((value) => value.includes(withoutQuote(trimmed)))) continue
    // The line may be a part of a secret: it is not shown, and neither is its name.
    const problem = isSet ? `The name is not valid. ${NAME_RULE}` : 'Write NAME=value.'
    warnings.push(`${CONFIGURATION_FILE}:${index + 1} sets nothing. ${problem}`)
  }
  const valid = [...parsed].filter(([name]) => isConfigurationName(name))
  return { values: new Map(valid.map(([name, value]) => [name, new Secret(value)])), warnings }
}

/** The last line of a quoted value ends with its quotation mark, which the value does not have. */
function withoutQuote(line: string): string {
  return line.replace(/["'`]\s*(?:#.*)?$/, '')
}

/** Reads the file in a Workspace that has the variables and secrets of its local Environment. */
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { FileFailure, readSecretFile } from '../../system/files.ts'
import { isConfigurationName } from '../../value/configuration.ts'
import { Secret } from '../../value/secret.ts'

/** Name of the file in the directory of the Workspace. The .gitignore of each template lists it. */
export const CONFIGURATION_FILE = '.env.local'
const BYTES_MAX = 4 * 1024 * 1024

export interface ConfigurationFile {
  /**
   * Values by name, each of which may be a secret. Empty if there is no file, null if the file
   * cannot be read.
   */
  readonly values: ReadonlyMap<string, Secret> | null
  /** Problems with their lines, in sentences without any text of the file. */
  readonly warnings: readonly string[]
}

/** Reads the file of a Workspace. Never throws and never blocks. */
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

/** Parses lines `NAME=value` as dotenv files have them, with the parser of Node.js. */
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
    // Neither the line nor its name is shown, since it may be a part of a secret.
    const problem = isSet ? `The name is not valid. ${NAME_RULE}` : 'Write NAME=value.'
    warnings.push(`${CONFIGURATION_FILE}:${index + 1} sets nothing. ${problem}`)
  }
  const valid = [...parsed].filter(([name]) => isConfigurationName(name))
  return { values: new Map(valid.map(([name, value]) => [name, new Secret(value)])), warnings }
}

/** Removes the quotation mark that ends the last line of a quoted value. */
function withoutQuote(line: string): string {
  return line.replace(/["'`]\s*(?:#.*)?$/, '')
}

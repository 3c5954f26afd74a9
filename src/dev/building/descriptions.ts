/** Finds problems between Functions and tables: duplicate names and missing references. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { quotedList } from '../../sdk/definition-errors.ts'
import { referencedTables } from '../../sdk/validators.ts'
import type { FunctionManifest, WorkspaceDescription } from '../../value/manifest.ts'
import type { ValidationError } from '../../value/validation-error.ts'
import { NO_HOOK_SECRET } from '../../wire/files/http-routes.ts'
import { functionPath } from '../codegen/codegen.ts'
import { fileProblem, type Problem } from '../workspace/problems.ts'
import {
  CRONS_FILE,
  HTTP_FILE,
  MIGRATIONS_FILE,
  SCHEMA_FILE,
  type WorkspaceFiles,
} from '../workspace/workspace-files.ts'

export interface DescriptionProblems {
  readonly problems: readonly Problem[]
  /** Warnings: allowed declarations that are rarely intended. */
  readonly diagnostics: readonly Problem[]
}

export function descriptionProblems(
  description: WorkspaceDescription,
  files: WorkspaceFiles,
): DescriptionProblems {
  const tables = description.tables.map(({ name }) => name)
  const { functions } = description
  return {
    problems: [
      ...functions.flatMap((each) => referenceProblems(each, tables, files)),
      ...nameProblems(functions, files),
      ...functions.filter(isDefaultExport).map((each) => defaultExportProblem(each, files)),
    ],
    diagnostics: diagnosticsOf(functions, files),
  }
}

function referenceProblems(
  definition: FunctionManifest,
  tables: readonly string[],
  files: WorkspaceFiles,
): Problem[] {
  const references = [
    ...referencedTables({ type: 'object', fields: definition.arguments }, 'arguments'),
    ...referencedTables(definition.returns, 'returns'),
  ]
  return references
    .filter(({ table }) => !tables.includes(table))
    .map(({ table, path: at }) => ({
      ...locationOfFunction(definition.name, files),
      message: `${definition.name}: ${at} is an ID of "${table}", which the schema does not have.`,
      fix:
        tables.length === 0
          ? `Declare the table in ${SCHEMA_FILE}.`
          : `Use ${quotedList(tables)}, or declare the table in ${SCHEMA_FILE}.`,
    }))
}

function isDefaultExport({ name }: FunctionManifest): boolean {
  return name.endsWith('.default')
}

function defaultExportProblem({ name, kind }: FunctionManifest, files: WorkspaceFiles): Problem {
  return {
    ...locationOfFunction(name, files),
    message: 'A default export has no name by which applications could call it.',
    fix: `Write export const NAME = ${kind}(...).`,
  }
}

/** Finds Functions with the name of a folder: references nest by path and export. */
function nameProblems(functions: readonly FunctionManifest[], files: WorkspaceFiles): Problem[] {
  const paths = new Map(functions.map(({ name }) => [functionPath(name).join('.'), name]))
  return functions.flatMap(({ name }) => {
    const path = functionPath(name)
    const location = locationOfFunction(name, files)
    if (path.includes('__proto__')) {
      const message = `${name}: the name __proto__ is reserved.`
      return [{ ...location, message, fix: 'Rename it.' }]
    }
    for (let length = 1; length < path.length; length++) {
      const other = paths.get(path.slice(0, length).join('.'))
      if (other === undefined) continue
      const shared = `api.${path.slice(0, length).join('.')}`
      const message = `${name} is a duplicate of ${other}: applications write ${shared} for both.`
      return [{ ...location, message, fix: 'Rename the export or the file.' }]
    }
    return []
  })
}

function diagnosticsOf(functions: readonly FunctionManifest[], files: WorkspaceFiles): Problem[] {
  if (functions.length === 0) {
    const message = 'The Workspace has no Functions.'
    return [fileProblem('functions', message, 'Export a query(...) or mutation(...) from a file.')]
  }
  return functions
    .filter(({ visibility, clients }) => visibility === 'public' && clients.length === 0)
    .map(({ name, kind }) => {
      const internal = `internal${kind[0]!.toUpperCase()}${kind.slice(1)}`
      return {
        ...locationOfFunction(name, files),
        message: `${name} has no clients, so no application can call it.`,
        fix: `Add clients: ["public"], or write ${internal}.`,
      }
    })
}

/** Finds the line that declares the export. */
function locationOfFunction(
  name: string,
  files: WorkspaceFiles,
): Pick<Problem, 'file' | 'line' | 'column'> {
  const dot = name.lastIndexOf('.')
  const exported = name.slice(dot + 1)
  const module = files.modules.find((each) => each.name === name.slice(0, dot))
  if (module === undefined) return { file: 'functions', line: null, column: null }
  const form = new RegExp(
    exported === 'default'
      ? '\\bexport\\s+default\\b'
      : `\\bexport\\s+(?:const|let|var)\\s+${RegExp.escape(exported)}(?![\\w$])`,
  )
  return { file: module.file, line: lineOf(module.file, form, files), column: null }
}

function lineOf(file: string, form: RegExp, { directory }: WorkspaceFiles): number | null {
  const lines = readFileSync(join(directory, file), 'utf8').split('\n')
  const found = lines.findIndex((line) => form.test(line))
  return found === -1 ? null : found + 1
}

const FILES_OF: Readonly<Record<string, string>> = {
  crons: CRONS_FILE,
  http: HTTP_FILE,
  migrations: MIGRATIONS_FILE,
}

/** Converts a violation of a manifest rule into a problem of the Workspace. */
export function describeValidationError(
  { path, rule }: ValidationError,
  described: unknown,
  files: WorkspaceFiles,
): Problem {
  const match = /^\$\.(functions|tables|crons|migrations|http)\[(\d+)\]\.?(.*)$/.exec(path)
  const list = (
    described as Partial<Record<string, readonly { readonly name?: unknown }[]>> | null
  )?.[match?.[1] ?? '']
  const name = list?.[Number(match?.[2])]?.name
  if (match === null || typeof name !== 'string') {
    return fileProblem(SCHEMA_FILE, `The Workspace must have ${rule} (${path}).`, null)
  }
  const message = `${name}: expected ${rule}${match[3] === '' ? '' : ` at ${match[3]}`}.`
  if (match[1] === 'functions') {
    const fix = fixOfFunction(match[3]!, rule)
    return { ...locationOfFunction(name, files), message, fix }
  }
  const file = FILES_OF[match[1]!] ?? SCHEMA_FILE
  const line = lineOf(file, new RegExp(`(?<![\\w$-])${RegExp.escape(name)}['"]?\\s*:`), files)
  return { file, line, column: null, message, fix: null }
}

function fixOfFunction(path: string, rule: string): string | null {
  // File paths are validated when they are read, so the export has the invalid name.
  if (path === 'name') return 'Rename the export with letters, digits, _ and $ only.'
  if (!rule.startsWith(NO_HOOK_SECRET)) return null
  return (
    'Leave it out: the server alone reads the secret, and what a handler gets is verified. ' +
    'For requests to the service, set its key as another secret.'
  )
}

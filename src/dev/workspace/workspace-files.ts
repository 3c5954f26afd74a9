/** Reads the files of a Workspace: the modules with Functions, their names, and svc.json. */
import { type Dirent, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientKind } from '../../value/manifest.ts'
import { parseWrittenJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { text } from '../../wire/fields.ts'
import { parse } from '../../wire/reading/read.ts'
import { rule } from '../../wire/rules.ts'
import { type Infer, schema } from '../../wire/schema.ts'
import { WorkspaceName } from '../../wire/workspace.ts'
import { fileProblem, type Problem, workspaceFault } from './problems.ts'

export interface WorkspaceModule {
  /** Path below `functions` without the extension: the first part of its Functions' names. */
  readonly name: string
  /** Relative to the Workspace, with forward slashes. */
  readonly file: string
}

export interface WorkspaceFiles {
  /** Absolute, without symbolic links. */
  readonly directory: string
  /** The name under which the Workspace is published. */
  readonly workspace: string
  /** Directory of the generated client, relative to the Workspace; null for none. */
  readonly client: string | null
  /** Kinds of Application Key that may call public Functions without `clients`. */
  readonly clients: readonly ClientKind[]
  /** Sorted by name. */
  readonly modules: readonly WorkspaceModule[]
  /** True if there is a file of Crons. */
  readonly hasCrons: boolean
  /** True if there is a file of migrations. */
  readonly hasMigrations: boolean
  /** True if there is a file of routes for other services. */
  readonly hasHttp: boolean
}

export const SCHEMA_FILE = 'schema.ts'
export const CRONS_FILE = 'crons.ts'
export const MIGRATIONS_FILE = 'migrations.ts'
export const HTTP_FILE = 'http.ts'
const SETTINGS_FILE = 'svc.json'
/** Matches a path that has no `..`, is not hidden, and is not among the files of Functions. */
const CLIENT_DIRECTORY =
  /^(?!\/|(?:functions|_generated|node_modules)(?:\/|$))(?:(?:^|\/)[\w-][\w.-]{0,63}){1,8}$/
const SettingsFile = schema({
  'workspace?': WorkspaceName,
  'client?': text(CLIENT_DIRECTORY, 'a directory of the Workspace, such as web/_generated'),
  'clients?': [
    "('public' | 'confidential')[]",
    ':',
    rule('each kind once', (kinds: readonly string[]) => new Set(kinds).size === kinds.length),
  ],
})
const DEFAULTS = { workspace: 'default', client: null, clients: [] }
const SETTINGS_HINT =
  'Write { "workspace": "default" }, or another name: a lower-case letter, then lower-case ' +
  'letters, digits and -, at most 63 characters. The other settings are "client", the directory ' +
  'for svc/client, svc/react and api.ts, and "clients", such as ["public"], the kinds of keys ' +
  'that may call Functions which name none.'
const FUNCTIONS_DIRECTORY = 'functions'
const SEGMENT = /^[A-Za-z0-9_-]+$/
const SOURCE = /\.[cm]?[jt]sx?$/
/** Matches declarations and tests beside Functions, which are never part of a bundle. */
const NOT_SOURCE = /\.(?:d|test|spec)\.[cm]?[jt]sx?$/
const FILES_MAX = 10_000
const DEPTH_MAX = 16

/** Reads the files. Throws WORKSPACE_INVALID with every problem. */
export function readWorkspaceFiles(path: string): WorkspaceFiles {
  const problems: Problem[] = []
  const directory = realDirectory(path)
  if (!isFile(join(directory, SCHEMA_FILE))) {
    problems.push(
      fileProblem(
        SCHEMA_FILE,
        `There is no such file in ${directory}.`,
        'Write it with: export default defineSchema({}), or create a Workspace with `svc init`.',
      ),
    )
  }
  const settings = readSettings(directory, problems)
  const modules: WorkspaceModule[] = []
  collect(join(directory, FUNCTIONS_DIRECTORY), [], { modules, problems })
  modules.sort((a, b) => (a.name < b.name ? -1 : 1))
  checkCase(modules, problems)
  if (problems.length > 0) throw workspaceFault(problems)
  return {
    directory,
    ...settings,
    modules,
    hasCrons: isFile(join(directory, CRONS_FILE)),
    hasMigrations: isFile(join(directory, MIGRATIONS_FILE)),
    hasHttp: isFile(join(directory, HTTP_FILE)),
  }
}

/** Resolves symbolic links. A missing path stays as it is, since a Workspace may appear later. */
export function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function realDirectory(path: string): string {
  try {
    const real = realpathSync(path)
    if (statSync(real).isDirectory()) return real
  } catch {
    // A path that cannot be read is reported like a missing one.
  }
  throw workspaceFault([fileProblem(path, 'There is no such directory.', null)])
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

interface Found {
  readonly modules: WorkspaceModule[]
  readonly problems: Problem[]
}

/** Collects modules. Symbolic links are skipped: they may leave the Workspace or form a cycle. */
function collect(directory: string, segments: readonly string[], found: Found): void {
  const folder = [FUNCTIONS_DIRECTORY, ...segments].join('/')
  const file = (name: string) => `${folder}/${name}`
  for (const entry of entriesOf(directory, folder, found.problems)) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    if (entry.isDirectory()) {
      if (segments.length === DEPTH_MAX) {
        const message = `Folders are nested more than ${DEPTH_MAX} deep.`
        found.problems.push(fileProblem(file(entry.name), message, 'Move its files further up.'))
        continue
      }
      collect(join(directory, entry.name), [...segments, entry.name], found)
    } else if (entry.isFile() && SOURCE.test(entry.name) && !NOT_SOURCE.test(entry.name)) {
      if (!entry.name.endsWith('.ts')) {
        // A skipped file would silently lack its Functions.
        const renamed = entry.name.replace(SOURCE, '.ts')
        const fix = `Rename it to ${renamed}, or move it out of ${FUNCTIONS_DIRECTORY}.`
        found.problems.push(fileProblem(file(entry.name), 'Functions are in .ts files.', fix))
        continue
      }
      const name = [...segments, entry.name.slice(0, -3)]
      if (!name.every((segment) => SEGMENT.test(segment))) {
        found.problems.push(
          fileProblem(
            file(entry.name),
            'Its path is part of the names of its Functions, and has invalid characters.',
            'Rename it with letters, digits, _ and - only.',
          ),
        )
      } else found.modules.push({ name: name.join('/'), file: file(entry.name) })
      if (found.modules.length > FILES_MAX) {
        const message = `There are more than ${FILES_MAX} files.`
        throw workspaceFault([fileProblem(FUNCTIONS_DIRECTORY, message, null)])
      }
    }
  }
}

/** Lists a folder; empty if it does not exist or cannot be read, which is reported as a problem. */
function entriesOf(directory: string, folder: string, problems: Problem[]): Dirent[] {
  try {
    return statSync(directory, { throwIfNoEntry: false })?.isDirectory()
      ? readdirSync(directory, { withFileTypes: true })
      : []
  } catch (error) {
    problems.push(unreadable(folder, error))
    return []
  }
}

function unreadable(file: string, error: unknown): Problem {
  const { code } = error as NodeJS.ErrnoException
  return fileProblem(file, `It cannot be read: ${code}.`, 'Give this user the right to read it.')
}

/** Finds names that differ only in case, which macOS and Windows treat as one file. */
function checkCase(modules: readonly WorkspaceModule[], problems: Problem[]): void {
  const seen = new Map<string, string>()
  for (const { name, file } of modules) {
    const other = seen.get(name.toLowerCase())
    if (other === undefined) seen.set(name.toLowerCase(), file)
    else {
      const message = `Its name differs from ${other} only in upper and lower case.`
      problems.push(fileProblem(file, message, 'Rename one of the two.'))
    }
  }
}

function readSettings(
  directory: string,
  problems: Problem[],
): Pick<WorkspaceFiles, 'workspace' | 'client' | 'clients'> {
  const path = join(directory, SETTINGS_FILE)
  if (!isFile(path)) return DEFAULTS
  try {
    const written: Infer<typeof SettingsFile> = parse(
      SettingsFile,
      parseWrittenJson(readFileSync(path)),
    )
    return { ...DEFAULTS, ...written }
  } catch (error) {
    problems.push(
      error instanceof ValidationError
        ? fileProblem(SETTINGS_FILE, `Expected ${error.rule} (${error.path}).`, SETTINGS_HINT)
        : unreadable(SETTINGS_FILE, error),
    )
    return DEFAULTS
  }
}

/**
 * Bundles the files of a Workspace into one script. Equal sources give equal bytes on any machine
 * and in any directory: paths, environment variables and times have no influence. No code of the
 * Workspace is executed here.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { FRAME_BYTES_MAX } from '../../runner/protocol/messages.ts'
import { SDK_TEXTS } from '../../sdk/embedded.generated.ts'
import { fileProblem, type Problem, workspaceFault } from '../workspace/problems.ts'
import {
  CRONS_FILE,
  HTTP_FILE,
  MIGRATIONS_FILE,
  SCHEMA_FILE,
  type WorkspaceFiles,
} from '../workspace/workspace-files.ts'
import { BUILTIN_NAMESPACE, builtinProblems, resolveBuiltin } from './builtins.ts'
import { type ForbiddenSyntax, findForbiddenSyntax } from './forbidden-syntax.ts'
import { SourceMap, type SourceMapJson } from './source-maps.ts'

export interface Bundle {
  /** The script. It calls `__svc.define` once; the realm that evaluates it provides `__svc`. */
  readonly source: string
  /** JSON text. Its sources have paths relative to the Workspace; that of the SDK is `svc`. */
  readonly sourceMap: string
  /** Absolute paths of the bundled files, without those of installed packages. */
  readonly files: readonly string[]
}

const ENTRY = 'svc:entry'
const SDK = 'svc'
const REFERENCES = 'svc:references'
const SCHEMA_CHECK = 'svc:schema-check'
const NAMESPACE = 'svc-virtual'

/** Bundles the files. Throws WORKSPACE_INVALID with the file, line and fix of every problem. */
export async function bundleWorkspace(files: WorkspaceFiles): Promise<Bundle> {
  const output = await Bun.build(configuration(files))
  if (!output.success) {
    throw workspaceFault(withoutFollowingErrors(output.logs).map((log) => buildProblem(log, files)))
  }
  const { inputs } = output.metafile!
  const builtins = builtinProblems({ inputs, entry: `${NAMESPACE}:${ENTRY}` }, (path) =>
    sourceName(path, files),
  )
  if (builtins.length > 0) throw workspaceFault(builtins)
  const extra = output.outputs.find(({ kind }) => kind !== 'entry-point' && kind !== 'sourcemap')
  if (extra !== undefined) {
    const message = `A file of this kind cannot be imported: ${extra.path}.`
    throw workspaceFault([
      fileProblem('functions', message, 'Import TypeScript, JavaScript, JSON or text.'),
    ])
  }
  const script = output.outputs.find(({ kind }) => kind === 'entry-point')!
  const map = normalMap(JSON.parse(await script.sourcemap!.text()), files)
  // A runner does not use the debug ID at the end.
  const source = (await script.text()).replace(/\n*\/\/# debugId=[0-9A-F]+\s*$/, '\n')
  checkSyntax(source, map, files)
  checkSize(source)
  return { source, sourceMap: JSON.stringify(map), files: sourceFiles(inputs) }
}

/** Returns the files of the author; paths of inputs are relative to the working directory. */
function sourceFiles(inputs: object): string[] {
  return Object.keys(inputs)
    .filter((path) => !/^[\w-]+:/.test(path) && !path.includes('node_modules/'))
    .map((path) => resolve(path))
}

function configuration(files: WorkspaceFiles): Bun.BuildConfig & { readonly macros: false } {
  return {
    entrypoints: [ENTRY],
    root: files.directory,
    target: 'browser',
    format: 'iife',
    // Comments would contain absolute paths. Identifiers stay readable in stack traces.
    minify: { whitespace: true, syntax: false, identifiers: false },
    sourcemap: 'external',
    metafile: true,
    throw: false,
    // A macro is code of the Workspace that would run with the permissions of this process.
    macros: false,
    env: 'disable',
    define: {
      'process.env.NODE_ENV': '"production"',
      __dirname: '"/"',
      __filename: '"/bundle.js"',
      // Read by sdk/functions.ts.
      'globalThis.__svcClients': JSON.stringify(files.clients),
    },
    plugins: [
      {
        name: 'svc',
        setup(build) {
          build.onResolve({ filter: /^svc(?::(?:entry|schema-check))?$/ }, ({ path }) => ({
            path,
            namespace: NAMESPACE,
          }))
          build.onResolve({ filter: /_generated\/api(?:\.[jt]s)?$/ }, ({ path, importer }) =>
            isReferences(resolve(dirname(importer), path), files)
              ? { path: REFERENCES, namespace: NAMESPACE }
              : undefined,
          )
          build.onResolve({ filter: /.*/ }, resolveBuiltin)
          build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => ({
            contents: virtualText(path, files),
            loader: 'js',
          }))
          // A placeholder: the chain of imports is only known when the bundle is complete.
          build.onLoad({ filter: /.*/, namespace: BUILTIN_NAMESPACE }, () => ({
            contents: 'module.exports = {}',
            loader: 'js',
          }))
        },
      },
    ],
  }
}

/** Returns whether a path is `_generated/api` of the Workspace itself. */
function isReferences(path: string, { directory }: WorkspaceFiles): boolean {
  return path.replace(/\.[jt]s$/, '') === join(directory, '_generated/api')
}

function virtualText(path: string, files: WorkspaceFiles): string {
  if (path === REFERENCES) return REFERENCES_TEXT
  if (path === SCHEMA_CHECK) return schemaCheckText(files)
  return path === SDK ? SDK_TEXTS.runtime : entryText(files)
}

/**
 * Replaces `_generated/api`, which is generated from the description of the loaded bundle. If the
 * bundle contained the file, the first build would fail, and later bundles would differ from it.
 */
const REFERENCES_TEXT = `
const key = Symbol.for('svc.reference')
const nothing = Object.freeze({})
const reference = (path) => new Proxy(nothing, {
  get: (_, name) => {
    if (name === key) return path.slice(0, -1).join('/') + '.' + path.at(-1)
    return typeof name === 'string' ? reference([...path, name]) : undefined
  },
})
export const api = reference([]), internal = api
`

const NO_SCHEMA = [
  `The default export of ${SCHEMA_FILE} must be defineSchema({ ... }).`,
  "Write: import { defineSchema } from 'svc', then: export default defineSchema({})",
].join(' ')

const NO_CRONS = `The default export of ${CRONS_FILE} must be cronJobs({ ... }).`
const NO_HTTP = `The default export of ${HTTP_FILE} must be httpRoutes({ ... }).`

function requireMark(name: string, message: string): string[] {
  return [
    `if (!${name}?.[Symbol.for('svc.${name}')])`,
    `throw Object.assign(new Error(${JSON.stringify(message)}), { name: 'DefinitionError' })`,
  ]
}

/**
 * Returns a module that checks the schema. It is a module of its own, so that it runs before
 * Functions that use the schema while they load.
 */
function schemaCheckText({ directory }: WorkspaceFiles): string {
  const path = JSON.stringify(resolve(directory, SCHEMA_FILE))
  return [`import schema from ${path}`, ...requireMark('schema', NO_SCHEMA)].join('\n')
}

function entryText({ directory, modules, ...files }: WorkspaceFiles): string {
  const path = (file: string) => JSON.stringify(resolve(directory, file))
  const { hasCrons, hasMigrations, hasHttp } = files
  const extra = { crons: hasCrons, migrations: hasMigrations, http: hasHttp }
  const defined = Object.entries(extra).map(([name, exists]) => (exists ? `${name}, ` : ''))
  return [
    `import { __readMigrations, __requireExports } from '${SDK}'`,
    `import schema from ${path(SCHEMA_FILE)}`,
    `import '${SCHEMA_CHECK}'`,
    // Before the Functions: where two files declare one name, the bundler renames it in the later
    // one, and the text of a migration is its identity.
    ...(hasMigrations ? [`import * as exportsOfMigrations from ${path(MIGRATIONS_FILE)}`] : []),
    ...(hasMigrations ? ['const migrations = __readMigrations(exportsOfMigrations)'] : []),
    ...modules.map(({ file }, i) => `import * as m${i} from ${path(file)}`),
    ...(hasCrons ? [`import crons from ${path(CRONS_FILE)}`] : []),
    ...(hasCrons ? requireMark('crons', NO_CRONS) : []),
    ...(hasHttp ? [`import http from ${path(HTTP_FILE)}`] : []),
    ...(hasHttp ? requireMark('http', NO_HTTP) : []),
    `__requireExports([${modules.map((_, i) => `m${i}`).join()}])`,
    `__svc.define({ schema, ${defined.join('')}modules: {`,
    ...modules.map(({ name }, i) => `${JSON.stringify(name)}: m${i},`),
    `} })`,
  ].join('\n')
}

/** Converts a path of the bundler, which is relative to the working directory. */
function sourceName(path: string, { directory }: WorkspaceFiles): string {
  if (path.startsWith(`${NAMESPACE}:`)) return path.slice(NAMESPACE.length + 1)
  const name = relative(directory, resolve(path)).replaceAll('\\', '/')
  // The location of an installed package must not change the bytes.
  const installed = name.lastIndexOf('node_modules/')
  return installed === -1 ? name : name.slice(installed)
}

function normalMap(map: SourceMapJson, files: WorkspaceFiles): SourceMapJson {
  return {
    version: 3,
    sources: map.sources.map((path) => sourceName(path, files)),
    names: map.names,
    mappings: map.mappings,
  }
}

/** Drops the errors that follow a misplaced await, which the parser mistakes for a name. */
function withoutFollowingErrors(logs: readonly (BuildMessage | ResolveMessage)[]) {
  const lost = new Set(logs.filter(isMisplacedAwait).map(({ position }) => position?.file))
  return logs.filter(
    (log) =>
      log.name === 'ResolveMessage' || !lost.has(log.position?.file) || isMisplacedAwait(log),
  )
}

function isMisplacedAwait({ message }: BuildMessage | ResolveMessage): boolean {
  return /"await" can only be used inside|Cannot use "await" outside/.test(message)
}

function buildProblem(log: BuildMessage | ResolveMessage, files: WorkspaceFiles): Problem {
  const { position } = log
  const path = position?.file ?? ''
  const inFile = position !== null && position.line > 0 && position.namespace === 'file'
  const file = path === '' || !inFile ? ownerOfVirtual(log.message) : sourceName(path, files)
  return {
    file,
    line: inFile ? position.line : null,
    column: inFile ? position.column : null,
    ...explain(log, files),
  }
}

/** Attributes a failure of the generated entry to the files that it imports. */
function ownerOfVirtual(message: string): string {
  return (
    [SCHEMA_FILE, CRONS_FILE, MIGRATIONS_FILE, HTTP_FILE].find((file) => message.includes(file)) ??
    'functions'
  )
}

function explain(
  log: BuildMessage | ResolveMessage,
  files: WorkspaceFiles,
): Pick<Problem, 'message' | 'fix'> {
  const { message } = log
  if (log.name === 'ResolveMessage') {
    const { specifier } = log as ResolveMessage
    return specifier.startsWith('.') || specifier.startsWith('/')
      ? { message: `There is no file "${specifier}".`, fix: 'Check the path and its spelling.' }
      : {
          message: `There is no package "${specifier}".`,
          fix: `Install it in the Workspace: npm install ${packageName(specifier)}`,
        }
  }
  const missing = /^No matching export in "(.*)" for import "(.*)"$/.exec(message)
  if (missing !== null) {
    const file = sourceName(missing[1]!, files)
    if (missing[2] === 'default' && file === SCHEMA_FILE) {
      const fix = 'Write: export default defineSchema({ ... })'
      return { message: 'The schema is not exported.', fix }
    }
    if (missing[2] === 'default' && file === CRONS_FILE) {
      const fix = 'Write: export default cronJobs({ ... })'
      return { message: 'The Crons are not exported.', fix }
    }
    if (missing[2] === 'default' && file === HTTP_FILE) {
      const fix = 'Write: export default httpRoutes({ ... })'
      return { message: 'The routes are not exported.', fix }
    }
    const fix = file === SDK ? 'Check the spelling.' : `Export it there, or check the spelling.`
    return { message: `"${file}" exports no "${missing[2]}".`, fix }
  }
  if (isMisplacedAwait(log)) {
    const fix = 'Write async before the function, or move it into a handler.'
    return { message: 'await is only available in async functions.', fix }
  }
  if (message === 'Macros are disabled') {
    return { message: 'Macros are not available.', fix: 'Import the function without macro.' }
  }
  const duplicate =
    /^"(.*)" has already been declared$|^Multiple exports with the same name "(.*)"$/
  const name = duplicate.exec(message)
  if (name !== null) {
    return { message: `"${name[1] ?? name[2]}" is declared twice.`, fix: 'Rename one of the two.' }
  }
  return { message: message.endsWith('.') ? message : `${message}.`, fix: null }
}

function packageName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

const FORBIDDEN: Readonly<Record<ForbiddenSyntax['kind'], Pick<Problem, 'message' | 'fix'>>> = {
  'import()': {
    message: 'import(...) with a computed name cannot be bundled.',
    fix: 'Write the name as text, as in import("./module"), or import it at the top.',
  },
  'import.meta': {
    message: 'import.meta is not available: a bundle has no files and no address.',
    fix: 'Remove it, or use another package.',
  },
}

function checkSyntax(source: string, map: SourceMapJson, files: WorkspaceFiles): void {
  const found = findForbiddenSyntax(source)
  if (found.length === 0) return
  const sourceMap = new SourceMap(map)
  throw workspaceFault(
    found.map(({ kind, offset }) => {
      const before = source.slice(0, offset)
      const line = before.split('\n').length
      const column = offset - before.lastIndexOf('\n')
      const location = sourceMap.find(line, column)
      return {
        file: location?.file ?? 'functions',
        line: location === null ? null : exactLine(location.file, location.line, kind, files),
        column: null,
        ...FORBIDDEN[kind],
      }
    }),
  )
}

/** Finds the line of the words, since the source map only has the start of the statement. */
function exactLine(
  file: string,
  line: number,
  kind: ForbiddenSyntax['kind'],
  { directory }: WorkspaceFiles,
): number {
  try {
    const lines = readFileSync(resolve(directory, file), 'utf8').split('\n')
    const form = kind === 'import()' ? /\bimport\s*\(/ : /\bimport\s*\.\s*meta\b/
    const found = lines.findIndex((text, i) => i >= line - 1 && i < line + 20 && form.test(text))
    return found === -1 ? line : found + 1
  } catch {
    return line
  }
}

/** Most bytes that JSON has for one UTF-16 unit, such as \u0000. */
const JSON_BYTES_MAX = 6

function checkSize(source: string): void {
  // A runner receives the bundle as a JSON string in one frame.
  const most = FRAME_BYTES_MAX - 1_024
  if (source.length * JSON_BYTES_MAX <= most) return
  const bytes = Buffer.byteLength(JSON.stringify(source))
  if (bytes <= most) return
  const message = `The bundle has ${bytes} bytes; at most ${most} can be loaded.`
  throw workspaceFault([fileProblem('functions', message, 'Import less, or smaller packages.')])
}

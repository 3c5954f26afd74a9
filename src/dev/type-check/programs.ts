/** A program of the compiler over one Workspace, which keeps unchanged files between checks. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type ts from 'typescript-api'
import type { Compiler } from './compilers.ts'

/** Compiler options of a Workspace without tsconfig.json. */
export const DEFAULT_OPTIONS = {
  target: 'es2023',
  lib: ['es2023'],
  types: [],
  module: 'preserve',
  moduleResolution: 'bundler',
  strict: true,
}
/** Options that a check overrides: no output, and declarations of packages are not checked. */
export const FORCED_OPTIONS = {
  noEmit: true,
  composite: false,
  incremental: false,
  declaration: false,
  skipLibCheck: true,
  emitDeclarationOnly: false,
}

interface CachedFile {
  readonly text: string
  readonly file: ts.SourceFile
}

export class CheckedProgram {
  readonly #compiler: Compiler
  readonly #directory: string
  readonly #files = new Map<string, CachedFile>()
  #builder: ts.SemanticDiagnosticsBuilderProgram | undefined

  constructor(compiler: Compiler, directory: string) {
    this.#compiler = compiler
    this.#directory = directory
  }

  /** Checks files and all that they import. Returns the program and its diagnostics. */
  check(roots: readonly string[]): {
    readonly program: ts.Program
    readonly diagnostics: readonly ts.Diagnostic[]
  } {
    const { api } = this.#compiler
    const { options, errors } = this.#configuration(roots)
    const host = this.#host(options)
    const builder = api.createSemanticDiagnosticsBuilderProgram(
      roots,
      options,
      host,
      this.#builder,
      errors,
    )
    this.#builder = builder
    const program = builder.getProgram()
    const found = [
      ...builder.getConfigFileParsingDiagnostics(),
      ...builder.getOptionsDiagnostics(),
      ...builder.getSyntacticDiagnostics(),
      ...builder.getGlobalDiagnostics(),
      ...builder.getSemanticDiagnostics(),
    ]
    return { program, diagnostics: api.sortAndDeduplicateDiagnostics(found) }
  }

  #configuration(roots: readonly string[]) {
    const { api } = this.#compiler
    const path = join(this.#directory, 'tsconfig.json')
    const written = existsSync(path)
      ? api.readConfigFile(path, (file) => readFileSync(file, 'utf8'))
      : { config: { compilerOptions: DEFAULT_OPTIONS } }
    const config = { ...written.config, files: roots, include: [], references: undefined }
    const forced: ts.CompilerOptions = FORCED_OPTIONS
    const parsed = api.parseJsonConfigFileContent(config, api.sys, this.#directory, forced, path)
    const { options } = parsed
    const paths = { svc: [join(this.#directory, '_generated/svc.d.ts')], ...options.paths }
    const errors = written.error === undefined ? parsed.errors : [written.error]
    return { options: { ...options, paths }, errors }
  }

  #host(options: ts.CompilerOptions): ts.CompilerHost {
    const { api, libraries, libraryDirectory } = this.#compiler
    const host = api.createCompilerHost(options)
    const library = (path: string) =>
      path.startsWith(`${libraryDirectory}/`)
        ? libraries?.get(path.slice(libraryDirectory.length + 1))
        : undefined
    return {
      ...host,
      getCurrentDirectory: () => this.#directory,
      getDefaultLibLocation: () => libraryDirectory,
      getDefaultLibFileName: (given) => `${libraryDirectory}/${api.getDefaultLibFileName(given)}`,
      fileExists: (path) => library(path) !== undefined || host.fileExists(path),
      readFile: (path) => library(path) ?? host.readFile(path),
      getSourceFile: (path, language) => this.#sourceFile(path, language, library(path)),
    }
  }

  #sourceFile(
    path: string,
    language: ts.ScriptTarget | ts.CreateSourceFileOptions,
    embedded: string | undefined,
  ): ts.SourceFile | undefined {
    const cached = this.#files.get(path)
    if (cached !== undefined && embedded !== undefined) return cached.file
    const text = embedded ?? this.#compiler.api.sys.readFile(path)
    if (text === undefined) {
      this.#files.delete(path)
      return undefined
    }
    if (cached?.text === text) return cached.file
    const file = this.#compiler.api.createSourceFile(path, text, language)
    // The builder compares versions to find the files that need another check.
    Object.assign(file, { version: String(Bun.hash(text)) })
    this.#files.set(path, { text, file })
    return file
  }
}

/**
 * Finds and loads a TypeScript compiler: that of the Workspace if it is installed there, otherwise
 * the one that the executable contains.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire as requireFrom } from 'node:module'
import { dirname, join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import type TypeScript from 'typescript-api'

export type TypeScriptApi = typeof TypeScript

export interface Compiler {
  readonly api: TypeScriptApi
  /** Declarations of the language by file name; null if they are files beside the compiler. */
  readonly libraries: ReadonlyMap<string, string> | null
  /** Directory of the declarations. */
  readonly libraryDirectory: string
}

/** A compiler that has no JavaScript API, as since TypeScript 7. */
export interface NativeCompiler {
  readonly executable: string
}

/** Name of the embedded file with the compressed compiler and declarations (build/compile.ts). */
export const EMBEDDED_COMPILER = 'typescript.zst'
/** Fictitious path of the embedded compiler. No file is read there. */
const EMBEDDED_DIRECTORY = '/svc-typescript'
const load = requireFrom(import.meta.url)

/** The compiler and its declarations as build/compile.ts embeds them. */
export interface EmbeddedCompiler {
  readonly compiler: string
  readonly libraries: Readonly<Record<string, string>>
}

/** Loads the compiler that the executable contains. */
export async function embeddedCompiler(): Promise<Compiler> {
  const { compiler, libraries } = (await embeddedFile()) ?? installedWithSources()
  const module = { exports: {} }
  const evaluate = new Function('module', 'exports', 'require', '__filename', '__dirname', compiler)
  const file = `${EMBEDDED_DIRECTORY}/typescript.js`
  evaluate(module, module.exports, load, file, EMBEDDED_DIRECTORY)
  return {
    api: module.exports as TypeScriptApi,
    libraries: new Map(Object.entries(libraries)),
    libraryDirectory: EMBEDDED_DIRECTORY,
  }
}

async function embeddedFile(): Promise<EmbeddedCompiler | null> {
  const files = Bun.embeddedFiles as readonly (Blob & { readonly name?: string })[]
  const file = files.find(({ name }) => name?.endsWith(EMBEDDED_COMPILER))
  if (file === undefined) return null
  const text = zstdDecompressSync(Buffer.from(await file.arrayBuffer())).toString('utf8')
  return JSON.parse(text)
}

/** Reads the compiler of a checkout, which has no embedded one. */
function installedWithSources(): EmbeddedCompiler {
  return readCompiler(dirname(load.resolve('typescript-api')))
}

/** Reads the compiler and the declarations that a Workspace may name in `lib`. */
export function readCompiler(directory: string): EmbeddedCompiler {
  const names = readdirSync(directory).filter((name) => /^lib\..*\.d\.ts$|^lib\.d\.ts$/.test(name))
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  return {
    compiler: read('typescript.js'),
    libraries: Object.fromEntries(names.sort().map((name) => [name, read(name)])),
  }
}

/** Finds the compiler that is installed for a Workspace; null without one. */
export function installedCompiler(directory: string): Compiler | NativeCompiler | null {
  const folder = installedPackage(directory, 'typescript')
  if (folder === null) return null
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const major = Number(String(version).split('.', 1)[0])
  if (major >= 7) return nativeCompiler(folder)
  const path = join(folder, 'lib/typescript.js')
  if (major < 5 || !existsSync(path)) return null
  const api = load(path) as TypeScriptApi
  return { api, libraries: null, libraryDirectory: join(folder, 'lib') }
}

function nativeCompiler(folder: string): NativeCompiler | null {
  const name = `@typescript/typescript-${process.platform}-${process.arch}`
  const program = process.platform === 'win32' ? 'lib/tsc.exe' : 'lib/tsc'
  const platform = installedPackage(folder, name)
  if (platform === null) return null
  const executable = join(platform, program)
  return existsSync(executable) ? { executable } : null
}

/** Finds an installed package from a directory upwards. */
function installedPackage(start: string, name: string): string | null {
  for (let directory = start; ; directory = dirname(directory)) {
    const folder = join(directory, 'node_modules', name)
    if (existsSync(join(folder, 'package.json'))) return folder
    if (dirname(directory) === directory) return null
  }
}

/**
 * Rejects imports of modules of Node, of Bun and of the web, which a runner does not have. The
 * bundler would substitute partial implementations; instead the build fails and shows the chain of
 * imports.
 */
import { readFileSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { isJsonObject } from '../../value/strict-json.ts'
import { fits } from '../../wire/reading/read.ts'
import { type Infer, schema } from '../../wire/schema.ts'
import type { Problem } from '../workspace/problems.ts'

export const BUILTIN_NAMESPACE = 'svc-builtin'

const ELSEWHERE = /^(?:node|bun|https?):/

/** The import graph that the bundler reports. */
export interface ImportGraph {
  readonly inputs: {
    readonly [path: string]: {
      readonly imports: readonly { readonly path: string; readonly original?: string }[]
    }
  }
  readonly entry: string
}

/**
 * Resolves builtins to a namespace of their own; undefined leaves the module to the bundler. A
 * package may replace a builtin for browsers, or have the name of one.
 */
export function resolveBuiltin({ path, importer }: { path: string; importer: string }) {
  if (ELSEWHERE.test(path) || path === 'bun') return { path, namespace: BUILTIN_NAMESPACE }
  if (!isBuiltin(`node:${path}`)) return undefined
  const directory = dirname(importer)
  if (replacedForBrowsers(path, directory)) return undefined
  const installed = installedPackage(path, directory)
  return installed === null ? { path, namespace: BUILTIN_NAMESPACE } : { path: installed }
}

/** Tells whether the `browser` field of the nearest package.json replaces the module. */
function replacedForBrowsers(specifier: string, start: string): boolean {
  for (const directory of upwards(start)) {
    const json = packageJson(directory)
    if (json === null) continue
    const { browser } = json
    return isJsonObject(browser) && Object.hasOwn(browser, specifier)
  }
  return false
}

/**
 * Finds the entry of an installed package that has the name of a builtin, which the bundler would
 * prefer. The resolver of the runtime cannot be used: it downloads missing packages.
 */
function installedPackage(name: string, start: string): string | null {
  for (const above of upwards(start)) {
    const directory = join(above, 'node_modules', name)
    const json = packageJson(directory)
    if (json === null) continue
    const entry = [json.browser, json.module, json.main].find((each) => typeof each === 'string')
    const path = join(directory, entry ?? 'index.js')
    const candidates = [path, `${path}.js`, join(path, 'index.js')]
    return candidates.find((each) => statSync(each, NO_THROW)?.isFile()) ?? null
  }
  return null
}

const NO_THROW = { throwIfNoEntry: false } as const

function* upwards(start: string): Generator<string> {
  for (let directory = start; ; directory = dirname(directory)) {
    yield directory
    if (dirname(directory) === directory) return
  }
}

/** The fields of a package.json that name the entry, in any form. */
const PackageFile = schema({
  'browser?': 'unknown',
  'module?': 'unknown',
  'main?': 'unknown',
  '+': 'ignore',
})

function packageJson(directory: string): Infer<typeof PackageFile> | null {
  try {
    const json: unknown = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
    return fits(PackageFile, json) ? json : null
  } catch {
    // The bundler reports a package.json that is missing or invalid, if it needs it.
    return null
  }
}

/** Returns one problem for each builtin in the graph. `nameOf` makes paths readable. */
export function builtinProblems(graph: ImportGraph, nameOf: (path: string) => string): Problem[] {
  const arrivals = walk(graph)
  const builtins = [...arrivals.keys()].filter(
    (path) => path.startsWith(`${BUILTIN_NAMESPACE}:`) || ELSEWHERE.test(path),
  )
  return builtins.sort().map((path) => problem(path, arrivals, nameOf))
}

interface Arrival {
  readonly importer: string
  readonly specifier: string
}

/** Finds the first importer of each module, breadth first, so that chains are shortest. */
function walk({ inputs, entry }: ImportGraph): ReadonlyMap<string, Arrival> {
  const arrivals = new Map<string, Arrival>()
  const queue = [entry]
  for (const importer of queue) {
    for (const { path, original } of inputs[importer]?.imports ?? []) {
      if (arrivals.has(path) || path === entry) continue
      arrivals.set(path, { importer, specifier: original ?? path })
      queue.push(path)
    }
  }
  return arrivals
}

function problem(
  path: string,
  arrivals: ReadonlyMap<string, Arrival>,
  nameOf: (path: string) => string,
): Problem {
  const chain: Arrival[] = []
  for (let at = arrivals.get(path); at !== undefined; at = arrivals.get(at.importer)) {
    chain.unshift(at)
  }
  // The first link is the generated entry, which is not part of the Workspace.
  const [first, ...rest] = chain.slice(1)
  const name = chain.at(-1)!.specifier
  const links = [first!, ...rest].map(
    ({ importer, specifier }) => `${nameOf(importer)} imports "${specifier}"`,
  )
  const why = name.startsWith('http')
    ? 'is not part of the Workspace: a bundle contains all of its modules.'
    : 'is not available: a Function has no files, network or processes.'
  return {
    file: nameOf(first!.importer),
    ...locationOfImport(first!),
    message: [`"${name}" ${why}`, ...(rest.length === 0 ? [] : links)].join('\n'),
    fix:
      rest.length === 0
        ? 'Remove the import.'
        : 'Use a package that works in browsers, or remove the import.',
  }
}

function locationOfImport({ importer, specifier }: Arrival): Pick<Problem, 'line' | 'column'> {
  try {
    const lines = readFileSync(importer, 'utf8').split('\n')
    for (const [i, text] of lines.entries()) {
      const column = Math.max(text.indexOf(`'${specifier}'`), text.indexOf(`"${specifier}"`))
      if (column !== -1) return { line: i + 1, column: column + 1 }
    }
  } catch {
    // If the file cannot be read again, the problem has no line.
  }
  return { line: null, column: null }
}

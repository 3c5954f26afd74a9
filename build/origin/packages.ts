/**
 * The one list of what an executable contains besides the sources: packages of npm, and the
 * libraries of the runtime. The licences and the bill of materials are made from it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'
import { assert } from '../../src/errors/assert.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The package of the runtime has no licence file; its documentation lists what it contains. */
const RUNTIME_PAGE = 'node_modules/bun-types/docs/project/license.mdx'

export interface BundledPackage {
  readonly name: string
  readonly version: string
  /** The licence as package.json names it; null if it does not. */
  readonly licence: string | null
  /** Path below the sources, which is also its key in package-lock.json. */
  readonly folder: string
}

/** A library that the runtime links. */
export interface RuntimeLibrary {
  readonly name: string
  /** The commit or version that the runtime reports; null if it reports none. */
  readonly version: string | null
  readonly licence: string
  readonly url: string
}

/** The first folder of packages may be a link, which the bundler follows out of the checkout. */
const PACKAGE_FOLDER = /^.*?(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//

/** Returns the packages with code in the outputs and those in `folders`, sorted by folder. */
export function bundledPackages(
  metafiles: readonly Metafile[],
  folders: readonly string[] = [],
): BundledPackage[] {
  const found = new Set(folders)
  for (const { outputs } of metafiles) {
    for (const { inputs } of Object.values(outputs)) {
      for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
        const match = PACKAGE_FOLDER.exec(path)
        if (match?.[1] !== undefined && bytesInOutput > 0) found.add(match[1])
      }
    }
  }
  return [...found].sort().map((folder) => {
    const about = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
    const { name, version, license } = about
    return { name, version, licence: typeof license === 'string' ? license : null, folder }
  })
}

/** Returns the page about the licences of the runtime, without the data about the page. */
export function runtimePage(): string {
  const page = readFileSync(join(ROOT, RUNTIME_PAGE), 'utf8')
  return page.replace(/^---\n.*?\n---\n/s, '').trim()
}

/** Names of libraries in `process.versions` that differ from those of the page. */
const VERSION_NAMES: Readonly<Record<string, string>> = {
  JavaScriptCore: 'webkit',
  'c-ares': 'ares',
  libicu: 'icu',
  libuv: 'uv',
  picohttp: 'picohttpparser',
  'zlib-ng': 'zlib',
}

/**
 * Returns the libraries that the runtime links, of the tables on its page, with the versions that
 * the runtime which builds reports: those of the release have the same version.
 */
export function runtimeLibraries(page: string = runtimePage()): RuntimeLibrary[] {
  const rows = [...page.matchAll(/^\|[^[|]*\[`?([^\]`]+)`?\]\(([^)]+)\)[^|]*\|([^|]+)\|\s*$/gm)]
  assert(rows.length > 0, `${RUNTIME_PAGE} has no table of libraries`)
  const listed = rows.map(([, name = '', url = '', licence = '']) => ({
    name,
    url,
    licence: licence.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').trim(),
  }))
  const engine = { name: 'JavaScriptCore', url: 'https://webkit.org', licence: 'LGPL-2.0' }
  return [engine, ...listed].map((library) => ({ ...library, version: reported(library.name) }))
}

function reported(name: string): string | null {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return process.versions[VERSION_NAMES[name] ?? plain] ?? null
}

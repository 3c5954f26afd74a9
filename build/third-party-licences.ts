/** Collects the licences of everything that an executable or the packed client contains. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { type BundledPackage, runtimePage } from './origin/packages.ts'

const ROOT = join(import.meta.dirname, '..')
const RULE = '-'.repeat(79)

/** Explains the rights that the LGPL gives, which need the way to link a changed library. */
const RUNTIME_HEAD = `Bun (MIT), https://github.com/oven-sh/bun

The executable contains the runtime Bun, by Oven and the contributors of Bun. Bun links
JavaScriptCore and other parts of WebKit (LGPL 2.0) and TinyCC (LGPL 2.1), whose licences follow.
To use a changed version of them, build Bun from its sources with your changes as described below,
put the new bun at node_modules/@oven/bun-<platform>/bin/bun of the sources of svc, and run
"npm run build" there: it makes the executable from that runtime.`

/** Returns the licences of the runtime inside the executable. */
export function runtimeLicences(): string {
  const own = (name: string) => readFileSync(join(ROOT, 'build/licences', name), 'utf8').trim()
  const parts = [
    RUNTIME_HEAD,
    own('MIT.txt'),
    runtimePage(),
    own('LGPL-2.0.txt'),
    own('LGPL-2.1.txt'),
  ]
  return `${parts.join('\n\n')}\n`
}

/** Returns the licences of packages in their order. */
export function packageLicences(packages: readonly BundledPackage[]): string {
  return joinLicences(packages.map(({ folder }) => readLicence(join(ROOT, folder))))
}

export function joinLicences(texts: readonly string[]): string {
  return `${texts.map((text) => text.trim()).join(`\n\n${RULE}\n\n`)}\n`
}

/** Returns the licence of a package. Throws if neither a file nor the README has its text. */
function readLicence(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((name) => /^(licen[cs]e|notice)/i.test(name))
  const texts = files.sort().map((name) => readFileSync(join(folder, name), 'utf8').trim())
  if (texts.length === 0) texts.push(readmeLicence(folder))
  assert(/copyright/i.test(texts.join()), `${about.name} has no licence text: do not ship it`)
  return [`${about.name} ${about.version} (${about.license ?? 'see below'})`, ...texts].join('\n\n')
}

/** Returns the section of the README about the licence; an empty text if there is none. */
function readmeLicence(folder: string): string {
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  const section = /^(?:#+ *licen[cs]e *\n|licen[cs]e *\n-+ *\n)(.*?)(?=^#|$(?![\s\S]))/ims
  return section.exec(readme)?.[1]?.trim() ?? ''
}

/** `npm run docs [-- --out DIR]`: writes the documentation as static pages, to dist/docs. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DOCUMENTS } from '../../src/docs/embedded.generated.ts'
import { embeddedSite } from '../../src/site/embedded-site.ts'
import type { Site } from '../../src/site/site.ts'
import { VERSION } from '../../src/value/version.ts'
import { ROOT } from '../bundle.ts'

/** Writes the files of a site below a folder, and returns their bytes. */
export function writeSite(site: Site, folder: string): number {
  let bytes = 0
  for (const path of site.paths) {
    const file = join(folder, path)
    const text = site.file(path)!.text
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    bytes += Buffer.byteLength(text)
  }
  return bytes
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { out: { type: 'string' } } })
  const isOwn = values.out === undefined
  const folder = isOwn ? join(ROOT, 'dist/docs') : resolve(values.out!)
  // Only the folder of this script is emptied: another one may hold other files.
  if (isOwn) rmSync(folder, { recursive: true, force: true })
  const site = embeddedSite(DOCUMENTS, VERSION)
  const bytes = writeSite(site, folder)
  const size = `${site.paths.length} files, ${Math.round(bytes / 1024)} KiB`
  process.stdout.write(`${join(folder, 'index.html')}  ${size}\n`)
}

/** Links `_generated` as the package `svc`, so that any test runner resolves the module "svc". */
import { existsSync, lstatSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Target of the link, as `npm install` writes it for `"svc": "file:_generated"`. */
const TARGET = '../_generated'

/**
 * Creates `node_modules/svc` in a Workspace with a `package.json`, unless it exists. A link that
 * cannot be created is not reported: builds do not need it, and `npm install` creates it.
 */
export function linkPackage(workspaceDirectory: string): void {
  if (!existsSync(join(workspaceDirectory, 'package.json'))) return
  const modules = join(workspaceDirectory, 'node_modules')
  const link = join(modules, 'svc')
  if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) return
  try {
    mkdirSync(modules, { recursive: true })
    symlinkSync(TARGET, link)
  } catch {
    // The directory is read-only, or another process was first.
  }
}

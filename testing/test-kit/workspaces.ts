/** Workspaces for tests of the test kit, and `svc` as an executable that runs from the sources. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT } from '../../build/bundle.ts'
import { writeWorkspace } from '../../src/dev/new-workspaces.ts'

const BUN = join(ROOT, 'node_modules/.bin/bun')

export interface KitWorkspace {
  /** Absolute path of the Workspace. */
  readonly directory: string
  /** Absolute path of an executable `svc`. */
  readonly executable: string
  write(path: string, text: string): void
  remove(): void
}

/** Creates a Workspace from a template, with these files in addition. */
export function kitWorkspace(
  template: 'chat' | 'api' | 'empty',
  files: Readonly<Record<string, string>> = {},
): KitWorkspace {
  const parent = mkdtempSync(join(tmpdir(), 'svc-kit-'))
  const directory = join(parent, 'workspace')
  const executable = join(parent, 'svc')
  writeFileSync(executable, `#!/bin/sh\nexec ${BUN} ${ROOT}/src/main.ts "$@"\n`)
  chmodSync(executable, 0o755)
  writeWorkspace(directory, { name: 'Kit', template })
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  for (const [path, text] of Object.entries(files)) write(path, text)
  return {
    directory,
    executable,
    write,
    remove: () => rmSync(parent, { recursive: true, force: true }),
  }
}

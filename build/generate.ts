/**
 * Runs every generator of the repository: each script build/embed-*.ts. `--check` changes nothing,
 * names what is stale and fails.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './bundle.ts'

/** The bundles of the writing threads contain the migrations, so these are generated first. */
const FIRST = 'embed-migrations.ts'

export function generators(): string[] {
  const names = readdirSync(import.meta.dirname)
    .filter((name) => /^embed-[a-z-]+\.ts$/.test(name) && !name.endsWith('.test.ts'))
    .sort()
  return [FIRST, ...names.filter((name) => name !== FIRST)]
}

if (import.meta.main) {
  const rest = process.argv.slice(2)
  for (const name of generators()) {
    const script = join('build', name)
    const result = spawnSync(process.execPath, [script, ...rest], { cwd: ROOT, stdio: 'inherit' })
    if (result.status !== 0) process.exitCode = 1
  }
}

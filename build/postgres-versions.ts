/**
 * `npm run test:postgres`: runs all tests that use PostgreSQL with each supported version other
 * than the one of `npm test`. The packages are installed into dist/, since nothing else needs them.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresPackage } from '../testing/servers/binaries.ts'

const ROOT = join(import.meta.dirname, '..')
/** The newest minor version of each major one, in the numbering of the package. */
const VERSIONS = ['16.14.0-beta.17', '17.10.0-beta.17']
const TESTS = ['src/documents/postgres', 'src/database', 'src/identity']

for (const version of VERSIONS) {
  const folder = join(ROOT, 'dist', `postgres-${version}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const install = ['install', '--no-save', '--no-audit', `${postgresPackage()}@${version}`]
  run('npm', install, folder, {})
  process.stdout.write(`PostgreSQL ${version}\n`)
  run('npx', ['bun', '--bun', 'vitest', 'run', ...TESTS], ROOT, { SVC_TEST_POSTGRES: folder })
}

function run(
  program: string,
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>>,
): void {
  const { status } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

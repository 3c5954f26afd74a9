/**
 * Makes the sources those of a release: `npm run release:prepare -- VERSION` sets the version in
 * every file that has it, gives it the unreleased entries of the changelog, and records that the
 * migrations are released. Commit the changes, then build that commit with `npm run release`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { compareVersions } from '../src/value/version.ts'
import { ROOT } from './bundle.ts'
import { recordMigrations, UNRELEASED } from './release.ts'

/** Throws before the first change if the version is not one, is older, or has no entries. */
export function prepareRelease(root: string, version: string): void {
  assert(/^\d+\.\d+\.\d+$/.test(version), 'the version has the form 1.2.3')
  const current = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
  assert(compareVersions(version, current) !== 'older', `${version} is older than ${current}`)
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  assert(changelog.includes(UNRELEASED), `the changelog has no entries below "${UNRELEASED}"`)
  const isNew = version === current || !changelog.includes(`## ${version}\n`)
  assert(isNew, `the changelog has ${version} already`)
  recordMigrations(root)
  replaceFirst(root, 'CHANGELOG.md', UNRELEASED, `## ${version}`)
  if (version === current) return
  replaceFirst(root, 'package.json', `"version": "${current}"`, `"version": "${version}"`)
  // The lock file names the version at its head and in the entry of the project.
  for (const _ of [1, 2]) {
    replaceFirst(root, 'package-lock.json', `"version": "${current}"`, `"version": "${version}"`)
  }
  replaceFirst(root, 'src/value/version.ts', `'${current}'`, `'${version}'`)
}

function replaceFirst(root: string, path: string, text: string, replacement: string): void {
  const before = readFileSync(join(root, path), 'utf8')
  assert(before.includes(text), `${path} does not contain ${text}`)
  writeFileSync(
    join(root, path),
    before.replace(text, () => replacement),
  )
}

if (import.meta.main) {
  const [version] = process.argv.slice(2)
  assert(version !== undefined, 'usage: npm run release:prepare -- VERSION')
  prepareRelease(ROOT, version)
  process.stdout.write(
    [
      `The sources are those of ${version}. Run npm run generate and commit the changes, then`,
      'build the release of that commit with npm run release.\n',
    ].join('\n'),
  )
}

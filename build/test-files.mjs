/** Finds the test files of `npm test` and of `npm run test:long`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const FOLDERS = ['src', 'build', 'testing', 'bench', 'e2e']
/** A module that does more in the long run reads this setting. */
const READS_SETTING = /process\.env\.SVC_TEST_LONG\b/
/** A file of which `npm test` runs nothing, so that no process is started for it. */
const SLOW_FILE = /^ \* @module-tag slow$/m
const IMPORTED = /\bfrom '(\.[^']+\.ts)'/g
const LONG_NAME = /\.(long|fuzz)\.test\.ts$/

/** Returns the paths of the files of `npm test`, relative to `root`: those that are not slow. */
export function quickTests(root) {
  return allTests(root).filter((path) => {
    return (
      !path.endsWith('.long.test.ts') && !SLOW_FILE.test(readFileSync(join(root, path), 'utf8'))
    )
  })
}

/**
 * Returns the paths of the tests that do more in the long run, relative to `root`: by their name, or
 * because they or a module of tests that they import read the setting of the long run.
 */
export function longTests(root) {
  const known = new Map()
  const isLonger = (path) => {
    if (known.has(path)) return known.get(path)
    // A cycle of imports adds nothing to the module that it returns to.
    known.set(path, false)
    const code = existsSync(path) ? readFileSync(path, 'utf8') : ''
    const imported = [...code.matchAll(IMPORTED)].map(([, name]) => resolve(dirname(path), name))
    const result =
      READS_SETTING.test(code) || imported.filter((each) => isOfTests(root, each)).some(isLonger)
    known.set(path, result)
    return result
  }
  return allTests(root).filter((path) => LONG_NAME.test(path) || isLonger(join(root, path)))
}

/** Modules of the product do not read the setting. */
function isOfTests(root, path) {
  return !path.startsWith(join(root, 'src/')) || path.endsWith('.test.ts')
}

function allTests(root) {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((name) => `${folder}/${name}`)
      .filter((path) => path.endsWith('.test.ts')),
  ).sort()
}

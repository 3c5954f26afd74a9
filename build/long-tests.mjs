/** Finds the tests of `npm run test:long`: those that do more there than in `npm test`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const FOLDERS = ['src', 'build', 'testing', 'bench', 'e2e']
/** A module that does more in the long run reads this setting. */
const READS_SETTING = /process\.env\.SVC_TEST_LONG\b/
const IMPORTED = /\bfrom '(\.[^']+\.ts)'/g
const LONG_NAME = /\.(long|fuzz)\.test\.ts$/

/**
 * Returns the paths of the tests, relative to `root`: by their name, or because they or a module of
 * tests that they import read the setting of the long run.
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
  return FOLDERS.flatMap((folder) => testsBelow(root, folder))
    .filter((path) => LONG_NAME.test(path) || isLonger(join(root, path)))
    .sort()
}

/** Modules of the product do not read the setting. */
function isOfTests(root, path) {
  return !path.startsWith(join(root, 'src/')) || path.endsWith('.test.ts')
}

function testsBelow(root, folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((path) => path.endsWith('.test.ts'))
}

/** `npm test`: runs every test, including those of the executables, from a fresh clone. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { longTests } from './long-tests.mjs'
import {
  BUN,
  checkMachine,
  ensureBuilt,
  ensurePackages,
  foreground,
  ROOT,
  say,
} from './prepare.mjs'

checkMachine()
ensurePackages()
ensureBuilt()
const report = join(ROOT, 'dist/test-report.json')
rmSync(report, { force: true })
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
// `--long` names the tests that do more in the long run.
const named = process.argv.slice(2).flatMap((each) => (each === '--long' ? longTests(ROOT) : each))
const status = await foreground(BUN, ['--bun', vitest, 'run', ...reporters, ...named])
const { passed, failed } = count()
say(`${passed} passed, ${failed} failed`)
process.exitCode = status === 0 && failed === 0 ? 0 : 1

/** A file that could not be loaded, and a run that was aborted, count as one failure each. */
function count() {
  if (!existsSync(report)) return { passed: 0, failed: 1 }
  const results = JSON.parse(readFileSync(report, 'utf8'))
  const broken = results.testResults.filter(
    (file) =>
      file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  const failed = results.numFailedTests + broken
  return { passed: results.numPassedTests, failed: failed === 0 && status !== 0 ? 1 : failed }
}

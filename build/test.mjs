/**
 * `npm test`: runs the tests that are not slow, those of the executables included, from a fresh
 * clone. `--all` adds the slow ones, `--long` runs the campaigns instead, and names of files run
 * every test of these.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  BUN,
  checkMachine,
  ensureBuilt,
  ensurePackages,
  foreground,
  ROOT,
  say,
} from './prepare.mjs'
import { longTests, quickTests } from './test-files.mjs'

checkMachine()
ensurePackages()
ensureBuilt()
const report = join(ROOT, 'dist/test-report.json')
rmSync(report, { force: true })
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
const status = await foreground(BUN, ['--bun', vitest, 'run', ...reporters, ...selection()])
const { passed, failed } = count()
say(`${passed} passed, ${failed} failed`)
process.exitCode = status === 0 && failed === 0 ? 0 : 1

/** Returns the arguments that select the tests; none for all of them. */
function selection() {
  const named = process.argv.slice(2)
  if (named.length === 0) {
    process.env.SVC_TEST_QUICK = '1'
    // Tests end before optimized code pays for its compilation: a tenth of the CPU time.
    process.env.BUN_JSC_useDFGJIT = '0'
    return ['--tags-filter=!slow', ...quickTests(ROOT)]
  }
  return named
    .filter((each) => each !== '--all')
    .flatMap((each) => (each === '--long' ? longTests(ROOT) : each))
}

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
